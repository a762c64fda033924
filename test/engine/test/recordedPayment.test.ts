/** A payment that is recorded already and is seen again under another id: alarm only where one object can be paid twice. */
import { assert, describe, it } from "@effect/vitest"
import { ChargeGateway, type ClaimedCharge, Ledger, SpendCap } from "@purser/core"
import { ChargePipeline } from "@purser/engine"
import { chargeFor, MockGateway } from "@purser/testkit"
import { Effect, Layer } from "effect"

const request = chargeFor("cust_1", "2026-07")

/** A gateway that names the payment of a paid object differently each time. */
const renaming = (isOneCall: boolean) => Layer.effect(ChargeGateway, Effect.gen(function*() {
  const gateway = yield* ChargeGateway
  let seen = 0
  const renamed: ChargeGateway["Service"]["retrieve"] = (order, id) =>
    Effect.map(gateway.retrieve(order, id), (payment) => payment.status === "succeeded" ? { ...payment, chargeId: `other_${++seen}` } : payment)
  return ChargeGateway.of({ ...gateway, isOneCall: () => isOneCall, retrieve: renamed })
})).pipe(Layer.provide(MockGateway.layer))

/** Two holders of one charge find it paid, one after the other; what the second is told. */
const seenTwice = (isOneCall: boolean) =>
  Effect.gen(function*() {
    const ledger = yield* Ledger
    const pipeline = yield* ChargePipeline
    yield* (yield* SpendCap).open({ ...request, expectedMinor: 1_000_000n, headroomPercent: 110 })
    const claimed = yield* ledger.claim(request, "one")
    if (claimed._tag !== "Claimed") return yield* Effect.die(new Error("not claimed"))
    assert.strictEqual((yield* pipeline.resume(claimed.charge))._tag, "Succeeded")
    const row = yield* ledger.find(request.chargeKey)
    const late: ClaimedCharge = { ...claimed.charge, state: "attached", resumed: true, paymentIntentId: row!.paymentIntentId }
    const answer = yield* Effect.result(pipeline.resume(late))
    return { answer, row: yield* ledger.find(request.chargeKey) }
  }).pipe(Effect.provide(ChargePipeline.layer.pipe(Layer.provideMerge(Layer.mergeAll(Ledger.layerMemory, SpendCap.layerMemory, renaming(isOneCall))))))

describe("a payment that is recorded already", () => {
  it.effect("is the recorded one where an object is paid at most once, whatever id it is shown under", () =>
    Effect.gen(function*() {
      const { answer, row } = yield* seenTwice(false)
      assert.strictEqual(answer._tag, "Success")
      assert.isNull(row!.quarantine)
    }))

  it.effect("is another one where nothing but a key stands before a second payment", () =>
    Effect.gen(function*() {
      const { answer, row } = yield* seenTwice(true)
      assert.strictEqual(answer._tag, "Failure")
      assert.match(row!.quarantine ?? "", /^paid twice/)
    }))
})
