/** The durations of steps: each counted once however it ends, from when it began. */
import { assert, describe, it } from "@effect/vitest"
import { type ChargeOutcome, ChargeRequest, LedgerError, LedgerUnavailable, Measures } from "@purser/core"
import { type Cause, Clock, Context, Effect, Exit, Fiber, Layer, Metric, Schema } from "effect"
import { TestClock } from "effect/testing"
import { type ChargeStep, chargeSteps, EngineMetrics } from "../src/EngineMetrics.ts"
import { makeInWork } from "../src/internal/inWork.ts"
import { makeSteps, Onward } from "../src/internal/steps.ts"

const measuring = (measures: boolean) => Layer.mergeAll(
  Layer.succeedContext(Context.make(Metric.MetricRegistry, new Map())),
  Layer.succeedContext(Context.make(Measures, measures))
)
const secondsOf = (step: ChargeStep) => Effect.map(Metric.value(EngineMetrics.stepSeconds.of(step)), ({ count, sum }) => [count, sum])
const request = Schema.decodeUnknownSync(ChargeRequest)({
  namespace: "zmq-billing", customerId: "acme", billingPeriod: "2026-07", amountMinor: 1999, currency: "usd", stripeCustomerId: "cus_1"
})
const failure = new LedgerError({ reason: new LedgerUnavailable({ operation: "test", detail: "away" }), chargeKey: request.chargeKey })
/** Lasts so many seconds of the test's clock. */
const lasting = (seconds: number) => TestClock.adjust(seconds * 1000)
const takes = (seconds: number) => Effect.as(lasting(seconds), seconds)
const fails = (seconds: number) => Effect.andThen(lasting(seconds), Effect.fail("no" as const))

class Again extends Onward<number, "no", string, "no"> {
  override again(cause: Cause.Cause<"no">): Effect.Effect<number, "no"> {
    return Effect.andThen(lasting(2), Effect.failCause(cause))
  }
  override onSuccess(answer: number) {
    return Effect.as(lasting(50), `took ${answer}`)
  }
  override onEnd(cause: Cause.Cause<"no">): Effect.Effect<string, "no"> {
    return Effect.andThen(lasting(50), Effect.failCause(cause))
  }
}

describe("the durations of steps", () => {
  it.effect("are those of the steps alone, whether they are answered or fail, with what follows left out", () =>
    Effect.gen(function*() {
      const { inTurn, step, stepNow, stepThen, tried } = yield* makeSteps(() => 0)
      const now = <A, E>(make: () => Effect.Effect<A, E>) => Effect.suspend(make)
      yield* step("release", takes(1))
      yield* Effect.flip(step("release", fails(2)))
      yield* now(() => stepNow("attach", takes(1)))
      yield* Effect.flip(now(() => stepNow("attach", fails(2))))
      assert.strictEqual(yield* now(() => stepThen("look", takes(1), (answer) => takes(answer + 50))), 51)
      assert.strictEqual(yield* Effect.flip(now(() => stepThen("look", fails(2), () => takes(50)))), "no")
      assert.strictEqual(yield* now(() => tried("settle", takes(1), new Again())), "took 1")
      // With what is done again.
      assert.strictEqual(yield* Effect.flip(now(() => tried("settle", fails(1), new Again()))), "no")
      assert.strictEqual(yield* now(() => inTurn((turn) => Effect.gen(function*() {
        yield* turn.begin("reserve", takes(1))
        turn.end()
        yield* lasting(50)
        return yield* Effect.flip(turn.begin("create", fails(2)))
      }))), "no")
      yield* Effect.flip(now(() => inTurn((turn) => turn.begin("reserve", fails(2)))))
      assert.deepStrictEqual(
        yield* Effect.forEach(["release", "attach", "look", "settle", "reserve", "claim"] as const, secondsOf),
        [[2, 3], [2, 3], [2, 3], [2, 4], [2, 3], [0, 0]]
      )
    }).pipe(Effect.provide(measuring(true))))

  it.effect("begin with the request, or where the step before ended, when nothing was waited for", () =>
    Effect.gen(function*() {
      const { inTurn, stepThen, whole } = yield* makeSteps(() => 0)
      const sinceNanos = whole!.now()
      yield* lasting(3)
      yield* Effect.suspend(() => stepThen("claim", takes(1), Effect.succeed, sinceNanos))
      yield* Effect.suspend(() => inTurn((turn) => Effect.gen(function*() {
        yield* turn.begin("reserve", takes(1), true)
        turn.end()
        yield* lasting(10)
        yield* turn.begin("create", takes(1), true)
        turn.end()
        yield* lasting(10)
        yield* turn.begin("attach", takes(1), false)
        turn.end()
      })))
      assert.deepStrictEqual(yield* Effect.forEach(["claim", "reserve", "create", "attach"] as const, secondsOf), [[1, 4], [1, 1], [1, 11], [1, 1]])
    }).pipe(Effect.provide(measuring(true))))

  it.effect("share a reading of the clock, when one begins in the act in which another ends, and no other does", () =>
    Effect.gen(function*() {
      let readings = 0n
      const clock = { ...(yield* Clock.Clock), monotonicTimeNanosUnsafe: () => (readings += 1n) * 1_000_000_000n }
      const { stepNow, stepThen, tried } = yield* Effect.provideService(makeSteps(() => 0), Clock.Clock, clock)
      const answer = Effect.succeed(1)
      const following = Effect.suspend(() => stepThen("look", answer, () => tried("settle", answer, new Again())))
      yield* following
      assert.strictEqual(readings, 3n)
      yield* Effect.suspend(() => stepThen("look", answer, () => Effect.suspend(() => tried("settle", answer, new Again()))))
      assert.strictEqual(readings, 7n, "the second was made later")
      yield* Effect.exit(Effect.suspend(() => stepThen("look", answer, (): Effect.Effect<never> => { throw new Error("bug") })))
      yield* Effect.forkChild(following).pipe(Effect.flatMap(Fiber.join))
      assert.strictEqual(readings, 12n, "and a moment that nobody has left is no other fiber's")
      yield* Effect.suspend(() => stepNow("attach", answer))
      assert.deepStrictEqual(yield* Effect.forEach(["look", "settle", "attach"] as const, secondsOf), [[4, 4], [3, 3], [1, 1]])
    }).pipe(Effect.provide(measuring(true))))

  it.effect("are in no series that nobody measures", () =>
    Effect.gen(function*() {
      const { inTurn, stepNow, stepThen, tried, whole } = yield* makeSteps(() => 7)
      yield* Effect.suspend(() => stepNow("attach", takes(1)))
      yield* Effect.suspend(() => stepThen("look", takes(1), Effect.succeed))
      yield* Effect.suspend(() => tried("settle", takes(1), new Again()))
      yield* Effect.suspend(() => inTurn((turn) => turn.begin("reserve", takes(1))))
      assert.isUndefined(whole)
      assert.deepStrictEqual((yield* Metric.snapshot).map(({ id }) => id), ["purser_charges_in_flight"])
      assert.strictEqual(chargeSteps.length, 8)
    }).pipe(Effect.provide(measuring(false))))
})

describe("the duration of a request", () => {
  it.effect("is counted once for each, whether it is answered, fails, is cut short, or is not taken up", () =>
    Effect.gen(function*() {
      const { whole } = yield* makeSteps(() => inWork.size())
      const inWork = makeInWork(whole)
      const share = (work: Effect.Effect<ChargeOutcome, LedgerError>) => Effect.suspend(() => inWork.share(request, 0, () => work))
      yield* Effect.flip(share(Effect.andThen(lasting(1), Effect.fail(failure))))
      const fibers = yield* Effect.forEach([1, 2], () => Effect.forkChild(share(Effect.never), { startImmediately: true }))
      yield* lasting(2)
      for (const fiber of fibers) yield* Fiber.interrupt(fiber)
      assert.strictEqual(yield* Effect.flip(inWork.refuse(failure)), failure)
      assert.isTrue(Exit.hasDies(yield* Effect.exit(share(Effect.die("bug")))))
      const { count, sum } = yield* Metric.value(EngineMetrics.chargeSeconds)
      assert.deepStrictEqual([count, sum], [5, 5])
    }).pipe(Effect.provide(measuring(true))))
})
