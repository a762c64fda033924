/** A worker that stands still between a decline and the release of its room, while a person has the charge tried again. */
import { assert, describe, it } from "@effect/vitest"
import { FaultPoint, Ledger, SpendCap } from "@purser/core"
import { ChargePipeline } from "@purser/engine"
import { chargeFor, MockGateway } from "@purser/testkit"
import { Deferred, Effect, Fiber, Layer } from "effect"

const declining = chargeFor("cust_1", "2026-07", { paymentMethod: "pm_card_chargeDeclined" })
const other = chargeFor("cust_2", "2026-07")

describe("a release that comes late", () => {
  it.effect("gives back its own attempt's room, and not that of the attempt that was paid meanwhile", () =>
    Effect.gen(function*() {
      const arrived = yield* Deferred.make<void>()
      const woken = yield* Deferred.make<void>()
      let isFirst = true
      const standingStill = Layer.succeed(FaultPoint, (place) =>
        Effect.suspend(() => {
          if (place !== "after-settle" || !isFirst) return Effect.void
          isFirst = false
          return Effect.andThen(Deferred.succeed(arrived, undefined), Deferred.await(woken))
        }))
      const engine = ChargePipeline.layer.pipe(Layer.provideMerge(Layer.mergeAll(Ledger.layerMemory, SpendCap.layerMemory, MockGateway.layer, standingStill)))
      yield* Effect.gen(function*() {
        const ledger = yield* Ledger
        const cap = yield* SpendCap
        const pipeline = yield* ChargePipeline
        yield* cap.open({ ...declining, expectedMinor: BigInt(declining.amountMinor), headroomPercent: 100 })
        const first = yield* Effect.forkChild(pipeline.charge(declining))
        yield* Deferred.await(arrived)
        yield* ledger.reopen({ chargeKeys: [declining.chargeKey], from: ["declined"], actor: "a person", reason: "another card", paymentMethod: "pm_card_visa" })
        const [again] = yield* ledger.takeExpired("two", 1)
        assert.strictEqual((yield* pipeline.resume(again!))._tag, "Succeeded")
        yield* Deferred.succeed(woken, undefined)
        assert.strictEqual((yield* Fiber.join(first))._tag, "Declined")
        assert.deepStrictEqual((yield* cap.report()).map(({ reservedMinor }) => reservedMinor), [BigInt(declining.amountMinor)])
        assert.strictEqual((yield* pipeline.charge(other))._tag, "Rejected")
        assert.deepStrictEqual([yield* MockGateway.payments("cust_1", "2026-07"), yield* MockGateway.payments("cust_2", "2026-07")], [1, 0])
      }).pipe(Effect.provide(engine))
    }))
})
