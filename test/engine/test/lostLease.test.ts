/** A worker that wakes up after its lease, with an object in its hands that the row does not know. */
import { assert, describe, it } from "@effect/vitest"
import { CapUnavailable, ChargeGateway, Ledger, SpendCap, SpendCapError } from "@purser/core"
import { ChargePipeline } from "@purser/engine"
import { chargeFor, MockGateway } from "@purser/testkit"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"

const request = chargeFor("cust_1", "2026-07")
const declining = chargeFor("cust_2", "2026-07", { paymentMethod: "pm_card_chargeDeclined" })
const engine = ChargePipeline.layer.pipe(Layer.provideMerge(Layer.mergeAll(Ledger.layerMemory, SpendCap.layerMemory, MockGateway.layer)))

/** The charge in the hands of two workers, the first of which has lost it. */
const takenOver = Effect.gen(function*() {
  const ledger = yield* Ledger
  yield* (yield* SpendCap).open({ ...request, expectedMinor: 1_000_000n, headroomPercent: 110 })
  const first = yield* ledger.claim(request, "one")
  yield* TestClock.adjust("1 minute")
  const [second] = yield* ledger.takeExpired("two", 1)
  if (first._tag !== "Claimed" || second === undefined) return yield* Effect.die(new Error("not taken over"))
  return { first: first.charge, second }
})
const resume = (charge: Parameters<ChargePipeline["Service"]["resume"]>[0]) => Effect.flatMap(ChargePipeline, (pipeline) => Effect.result(pipeline.resume(charge)))
const calls = Effect.flatMap(MockGateway, (mock) => mock.calls)

describe("a worker that has lost its lease", () => {
  it.effect("leaves its object to the next holder, who is given the same one", () =>
    Effect.gen(function*() {
      const { first, second } = yield* takenOver
      assert.strictEqual((yield* resume(first))._tag, "Failure")
      assert.notInclude(yield* calls, "cancel")
      assert.strictEqual((yield* resume(second))._tag, "Success")
      assert.strictEqual((yield* (yield* Ledger).find(request.chargeKey))?.generation, 1)
      assert.strictEqual(yield* MockGateway.payments("cust_1", "2026-07"), 1)
    }).pipe(Effect.provide(engine)))

  it.effect("gives back the room that it took after the charge was declined elsewhere", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const cap = yield* SpendCap
      yield* cap.open({ ...declining, expectedMinor: 1_000_000n, headroomPercent: 110 })
      const first = yield* ledger.claim(declining, "one")
      if (first._tag !== "Claimed") return yield* Effect.die(new Error("not claimed"))
      yield* TestClock.adjust("1 minute")
      const [second] = yield* ledger.takeExpired("two", 1)
      assert.strictEqual((yield* resume(second!))._tag, "Success")
      yield* resume(first.charge)
      assert.strictEqual((yield* ledger.find(declining.chargeKey))?.state, "declined")
      assert.deepStrictEqual((yield* cap.report()).map(({ reservedMinor }) => reservedMinor), [0n])
    }).pipe(Effect.provide(engine)))

  it.effect("gives that room back also when the store is away at that moment, since nobody else would", () => {
    const away = new SpendCapError({ reason: new CapUnavailable({ operation: "release", detail: "down" }), chargeKey: declining.chargeKey })
    let failures = 0
    const flaky = Layer.effect(SpendCap, Effect.map(SpendCap, (cap) =>
      SpendCap.of({ ...cap, release: (key, attempt) => Effect.suspend(() => failures-- > 0 ? Effect.fail(away) : cap.release(key, attempt)) }))).pipe(Layer.provide(SpendCap.layerMemory))
    return Effect.gen(function*() {
      const cap = yield* SpendCap
      yield* cap.open({ ...declining, expectedMinor: 1_000_000n, headroomPercent: 110 })
      const first = yield* (yield* Ledger).claim(declining, "one")
      if (first._tag !== "Claimed") return yield* Effect.die(new Error("not claimed"))
      yield* TestClock.adjust("1 minute")
      const [second] = yield* (yield* Ledger).takeExpired("two", 1)
      assert.strictEqual((yield* resume(second!))._tag, "Success")
      failures = 2
      const woken = yield* Effect.forkChild(resume(first.charge))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual([(yield* Fiber.join(woken))._tag, failures], ["Success", -1])
      assert.deepStrictEqual((yield* cap.report()).map(({ reservedMinor }) => reservedMinor), [0n])
    }).pipe(Effect.provide(ChargePipeline.layer.pipe(Layer.provideMerge(Layer.mergeAll(Ledger.layerMemory, flaky, MockGateway.layer)))))
  })

  it.effect("cancels its object when another one is in the row", () =>
    Effect.gen(function*() {
      const { first, second } = yield* takenOver
      const order = { chargeKey: request.chargeKey, request, generation: 1 }
      const other = yield* (yield* ChargeGateway).create(order, ":other")
      yield* (yield* Ledger).attach({ lease: second.lease, generation: 1, paymentIntentId: other.id, paymentMethod: "pm_card_visa" })
      assert.strictEqual((yield* resume(first))._tag, "Failure")
      assert.include(yield* calls, "cancel")
    }).pipe(Effect.provide(engine)))
})
