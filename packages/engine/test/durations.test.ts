/** How long a charge's steps take, as metrics tell it: each its own time and nothing of what comes beside them. */
import { assert, describe, it } from "@effect/vitest"
import { type ChargeOutcome, Measures, type PipelineError } from "@purser/core"
import { Effect, Fiber, Metric } from "effect"
import { TestClock } from "effect/testing"
import type { ChargePipeline } from "../src/ChargePipeline.ts"
import { chargeSteps, EngineMetrics } from "../src/EngineMetrics.ts"
import { charge, declinedAs, paid, payment, ran, request, type Script } from "./support/scripted.ts"

const after = <A>(millis: number, answer: A) => Effect.delay(Effect.succeed(answer), millis)

/** Each answer takes a time of its own, so that a sum tells what it is made of. */
const slow = (script: Script = {}): Script => ({
  ledger: {
    claim: () => after(1, { _tag: "Claimed", charge: charge({ paymentMethod: null }) }),
    attach: () => after(16, { _tag: "Attached" }),
    settle: ({ outcome }) => after(64, { _tag: "Settled", outcome }),
    handBack: () => after(128, undefined),
    ...script.ledger
  },
  cap: { reserve: () => after(2, undefined), release: () => after(256, undefined) },
  gateway: { create: () => after(4, payment()), defaultPaymentMethod: () => after(8, "pm_default"), confirm: () => after(32, paid), ...script.gateway }
})

/** How often and how many milliseconds, by step, and for the whole. */
const durations = Effect.gen(function*() {
  const told: Record<string, string> = {}
  const tell = Effect.fnUntraced(function*(name: string, metric: Metric.Histogram<number>) {
    const { count, sum } = yield* Metric.value(metric)
    if (count > 0) told[name] = `${count} of ${Math.round(sum * 1000)}`
  })
  for (const step of chargeSteps) yield* tell(step, EngineMetrics.stepSeconds.of(step))
  yield* tell("whole", EngineMetrics.chargeSeconds)
  return told
})

const measured = (script: Script, run: (pipeline: ChargePipeline["Service"]) => Effect.Effect<Record<string, string>, PipelineError>) =>
  Effect.gen(function*() {
    let seen: Record<string, string> = {}
    yield* ran(script, (pipeline) => Effect.as(Effect.tap(run(pipeline), (told) => Effect.sync(() => void (seen = told))), {} as ChargeOutcome))
    return seen
  }).pipe(Effect.provideService(Measures, true))

const charged = (pipeline: ChargePipeline["Service"], ways: number = 1) =>
  Effect.gen(function*() {
    const fibers = yield* Effect.forEach(Array.from({ length: ways }), () => Effect.forkChild(pipeline.charge(request)))
    yield* TestClock.adjust(1000)
    for (const fiber of fibers) yield* Fiber.join(fiber)
    return yield* durations
  })

describe("durations", () => {
  it.effect("are those of the steps, and of the whole with what comes between them", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* measured(slow(), (pipeline) => charged(pipeline)), {
        claim: "1 of 1", reserve: "1 of 2", create: "1 of 4", attach: "1 of 16", confirm: "1 of 32", settle: "1 of 64", whole: "1 of 127"
      })
    }))

  it.effect("hold what follows a refusal apart, and the whole for each who waits", () =>
    Effect.gen(function*() {
      const refusing = slow({ gateway: { confirm: () => after(32, declinedAs("ch_1")) } })
      assert.deepStrictEqual(yield* measured(refusing, (pipeline) => charged(pipeline, 2)), {
        claim: "1 of 1", reserve: "1 of 2", create: "1 of 4", attach: "1 of 16", confirm: "1 of 32", settle: "1 of 64", release: "1 of 256", whole: "2 of 766"
      })
    }))

  it.effect("end with the step when the worker is stopped, before the charge is handed back", () =>
    Effect.gen(function*() {
      const told = yield* measured(slow(), (pipeline) =>
        Effect.gen(function*() {
          const fiber = yield* Effect.forkChild(pipeline.charge(request))
          yield* TestClock.adjust(31 + 10)
          yield* Effect.forkChild(Fiber.interrupt(fiber))
          yield* TestClock.adjust(1000)
          yield* Fiber.await(fiber)
          return yield* durations
        }))
      assert.deepStrictEqual(told, { claim: "1 of 1", reserve: "1 of 2", create: "1 of 4", attach: "1 of 16", confirm: "1 of 10", whole: "1 of 169" })
    }))

  it.effect("bear the labels that are in force around their charge", () =>
    Effect.gen(function*() {
      const told = yield* measured(slow(), (pipeline) =>
        Effect.gen(function*() {
          const within = yield* Effect.provideService(charged(pipeline), Metric.CurrentMetricAttributes, { pool: "a" })
          return { within: within["whole"]!, outside: String(Object.keys(yield* durations)) }
        }))
      assert.deepStrictEqual(told, { within: "1 of 127", outside: "" })
    }))
})
