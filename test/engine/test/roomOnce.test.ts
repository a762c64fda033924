/** How often one run of the steps asks for room under the cap. */
import { assert, describe, it } from "@effect/vitest"
import { FaultPoint, Ledger, SpendCap } from "@purser/core"
import { ChargePipeline } from "@purser/engine"
import { chargeFor, MockGateway } from "@purser/testkit"
import { type Duration, Effect, Layer, Ref } from "effect"
import { TestClock } from "effect/testing"

const request = chargeFor("cust_1", "2026-07")

/** Charges while time passes between attach and confirm, and answers how often room was asked for. */
const asked = (pause: Duration.Input) =>
  Effect.gen(function*() {
    const times = yield* Ref.make(0)
    const counted = Layer.effect(SpendCap, Effect.map(SpendCap, (cap) =>
      SpendCap.of({ ...cap, reserve: (wish) => Effect.andThen(Ref.update(times, (n) => n + 1), cap.reserve(wish)) }))).pipe(Layer.provide(SpendCap.layerMemory))
    const slow = Layer.succeed(FaultPoint, (place) => place === "after-attach" ? TestClock.adjust(pause) : Effect.void)
    const engine = ChargePipeline.layer.pipe(Layer.provideMerge(Layer.mergeAll(Ledger.layerMemory, counted, MockGateway.layer, slow)))
    return yield* Effect.gen(function*() {
      yield* (yield* SpendCap).open({ ...request, expectedMinor: 1_000_000n, headroomPercent: 110 })
      assert.strictEqual((yield* (yield* ChargePipeline).charge(request))._tag, "Succeeded")
      assert.strictEqual(yield* MockGateway.payments("cust_1", "2026-07"), 1)
      return yield* Ref.get(times)
    }).pipe(Effect.provide(engine))
  })

describe("room under the cap", () => {
  it.effect("is asked for once by a run whose lease is fresh", () => Effect.map(asked(0), (times) => assert.strictEqual(times, 1)))

  it.effect("is asked for again before a confirm when half the lease is gone", () => Effect.map(asked("10 seconds"), (times) => assert.strictEqual(times, 2)))
})
