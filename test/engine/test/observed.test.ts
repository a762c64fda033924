import { assert, describe, it } from "@effect/vitest"
import { ChargeClient, FaultPoint, Measures } from "@purser/core"
import { ChargePipeline, EngineMetrics } from "@purser/engine"
import { chargeFor, FaultPlan, TestPipeline } from "@purser/testkit"
import { parentId, SpanJournal } from "@purser/testkit/SpanJournal"
import { Context, Effect, Layer, Metric } from "effect"

const counted = (metric: Metric.Metric<never, { readonly count: number | bigint }>) => Effect.map(Metric.value(metric), ({ count }) => Number(count))
const fresh = () => Layer.succeedContext(Context.make(Metric.MetricRegistry, new Map()))
/** A second delivery finds the first one in work. */
const unhurried = Layer.succeedContext(Context.make(FaultPoint, (place) => place === "after-claim" ? Effect.yieldNow : Effect.void))
const measured = Layer.succeedContext(Context.make(Measures, true))

describe("what is seen of a charge", () => {
  it.live("its steps are spans below it, in their order, and their durations are measured", () =>
    Effect.gen(function*() {
      const journal = yield* SpanJournal
      const request = chargeFor("seen", "2026-07")
      yield* (yield* ChargeClient).submit(request)
      const [charge] = yield* journal.named("ChargePipeline.charge")
      const below = (yield* journal.all).filter((span) => charge !== undefined && parentId(span) === charge.spanId)
      assert.deepStrictEqual(below.map(({ name }) => name), ["charge.claim", "charge.reserve", "charge.create", "charge.attach", "charge.confirm", "charge.settle"])
      assert.deepStrictEqual(Object.fromEntries(charge?.attributes ?? []), {
        "purser.charge_key": request.chargeKey, "purser.billing_period": "2026-07", "purser.outcome": "succeeded"
      })
      for (const step of ["claim", "create", "confirm", "settle"]) assert.strictEqual(yield* counted(EngineMetrics.stepSeconds.of(step)), 1, step)
      assert.strictEqual(yield* counted(EngineMetrics.chargeSeconds), 1)
    }).pipe(Effect.provide(TestPipeline.layer.pipe(Layer.provideMerge(Layer.mergeAll(SpanJournal.layer, fresh(), measured))))))

  it.live("is counted once by its state, its deliveries by what they found, and nothing is measured for nobody", () =>
    Effect.gen(function*() {
      const client = yield* ChargeClient
      const { charge } = yield* ChargePipeline
      const request = chargeFor("again", "2026-07")
      yield* FaultPlan.loseReply(1)
      yield* client.submit(request)
      yield* charge(request)
      assert.strictEqual(yield* counted(EngineMetrics.charges.of("succeeded")), 1)
      assert.strictEqual(yield* counted(EngineMetrics.redeliveries.of("settled")), 2)
      const other = { ...request, amountMinor: 1234 }
      const refused = yield* Effect.flip(charge(chargeFor("again", "2026-07", other)))
      assert.strictEqual(refused.reason._tag, "ChargeConflict")
      assert.strictEqual(yield* counted(EngineMetrics.unsettled.of("ChargeConflict")), 1)
      yield* Effect.all([charge(chargeFor("twice", "2026-07")), charge(chargeFor("twice", "2026-07"))], { concurrency: 2 })
      assert.strictEqual(yield* counted(EngineMetrics.redeliveries.of("joined")), 1)
      assert.strictEqual(yield* counted(EngineMetrics.charges.of("succeeded")), 2)
      yield* charge(chargeFor("keyed", "2026-07", { senderKey: "0".repeat(32) }))
      assert.strictEqual(yield* counted(EngineMetrics.foreignKeys), 1)
      const ids = (yield* Metric.snapshot).map(({ id }) => id)
      assert.notInclude(ids, "purser_charge_duration_seconds")
      assert.notInclude(ids, "purser_charge_step_duration_seconds")
      assert.strictEqual((yield* Metric.value(EngineMetrics.inFlight)).value, 0)
    }).pipe(Effect.provide(TestPipeline.layer.pipe(Layer.provideMerge(Layer.mergeAll(fresh(), unhurried))))))
})
