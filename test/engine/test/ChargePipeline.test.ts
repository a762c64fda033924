import { assert, describe, it } from "@effect/vitest"
import { CardDeclined, ChargeClient, GatewayUnavailable, KeyInUse, Ledger, RateLimited, SpendCap } from "@purser/core"
import { ChargePipeline, Sweeper } from "@purser/engine"
import { chargeFor, FaultPlan, MockGateway, TestPipeline } from "@purser/testkit"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"

const unavailable = (replayed: boolean) => new GatewayUnavailable({ operation: "test", status: 500, replayed, detail: "test" })

describe("ChargePipeline", () => {
  it.effect("charges once when the reply is lost", () =>
    Effect.gen(function*() {
      const client = yield* ChargeClient
      yield* FaultPlan.loseReply(1)
      const outcome = yield* client.submit(chargeFor("cust_123", "2025-Q3"))
      assert.strictEqual(outcome._tag, "Succeeded")
      assert.isTrue(outcome.alreadySettled)
      assert.strictEqual(yield* MockGateway.payments("cust_123", "Q3-2025"), 1)
    }).pipe(Effect.provide(TestPipeline.layer)))

  it.effect("charges once when requests are lost and repeated", () =>
    Effect.gen(function*() {
      const client = yield* ChargeClient
      yield* FaultPlan.loseRequest(2)
      yield* FaultPlan.repeatRequest(1)
      const outcome = yield* client.submit(chargeFor("a", "2025-07"))
      assert.strictEqual(outcome._tag, "Succeeded")
      assert.strictEqual(yield* MockGateway.payments("a", "2025-07"), 1)
    }).pipe(Effect.provide(TestPipeline.layer)))

  for (const step of ["create", "confirm"] as const) {
    for (const when of ["before", "after"] as const) {
      it.effect(`charges once when ${step} fails ${when} it is carried out`, () =>
        Effect.gen(function*() {
          yield* MockGateway.fail({ step, when })
          const outcome = yield* (yield* ChargePipeline).charge(chargeFor("a", "2025-07"))
          assert.strictEqual(outcome._tag, "Succeeded")
          assert.strictEqual(yield* MockGateway.payments("a", "2025-07"), 1)
        }).pipe(Effect.provide(TestPipeline.layer)))
    }
  }

  for (const [name, reason] of [
    ["a stored 500", unavailable(true)],
    ["a 500", unavailable(false)],
    ["a key in use", new KeyInUse({ operation: "test" })],
    ["a rate limit", new RateLimited({ retryAfterMs: null, limitReason: "global-rate" })]
  ] as const) {
    it.effect(`gets through ${name} on both calls`, () =>
      Effect.gen(function*() {
        yield* MockGateway.fail({ step: "create", when: "before", reason }, 2)
        yield* MockGateway.fail({ step: "confirm", when: "before", reason }, 2)
        const outcome = yield* (yield* ChargePipeline).charge(chargeFor("a", "2025-07"))
        assert.strictEqual(outcome._tag, "Succeeded")
        assert.strictEqual(yield* MockGateway.payments("a", "2025-07"), 1)
      }).pipe(Effect.provide(TestPipeline.layer)))
  }

  it.effect("leaves an unknown outcome open and visible, and the sweeper settles it", () =>
    Effect.gen(function*() {
      const request = chargeFor("a", "2025-07")
      yield* MockGateway.fail({ step: "confirm", when: "after" }, 1)
      yield* MockGateway.fail({ step: "retrieve", when: "before" }, 100)
      const error = yield* Effect.flip((yield* ChargePipeline).charge(request))
      assert.strictEqual(error.outcome, "unknown")
      const ledger = yield* Ledger
      assert.strictEqual((yield* ledger.find(request.chargeKey))?.state, "attached")
      yield* MockGateway.clear
      const report = yield* (yield* Sweeper).sweepOnce
      assert.deepStrictEqual(report, { taken: 1, settled: 1, unsettled: 0, released: 0 })
      assert.strictEqual((yield* ledger.find(request.chargeKey))?.state, "succeeded")
      assert.strictEqual(yield* MockGateway.payments("a", "2025-07"), 1)
    }).pipe(Effect.provide(TestPipeline.layer)))

  it.effect("records a decline once and gives the room back", () =>
    Effect.gen(function*() {
      const cap = yield* SpendCap
      const request = chargeFor("a", "2025-07", { paymentMethod: "pm_card_visa_chargeDeclinedInsufficientFunds" })
      yield* cap.open({ ...request, expectedMinor: 1000n, headroomPercent: 110 })
      const pipeline = yield* ChargePipeline
      const first = yield* pipeline.charge(request)
      assert.strictEqual(first._tag, "Declined")
      assert.strictEqual((yield* cap.report())[0]?.reservedMinor, 0n)
      const again = yield* pipeline.charge(request)
      assert.isTrue(again.alreadySettled)
      assert.strictEqual((yield* (yield* MockGateway).calls).filter((step) => step === "confirm").length, 1)
    }).pipe(Effect.provide(TestPipeline.layerStrictCap)))

  it.effect("a late release of an earlier attempt leaves the room of the next one alone", () =>
    Effect.gen(function*() {
      const cap = yield* SpendCap
      const ledger = yield* Ledger
      const request = chargeFor("a", "2025-07")
      yield* cap.open({ ...request, expectedMinor: 1000n, headroomPercent: 110 })
      yield* MockGateway.fail({ step: "confirm", when: "before", reason: new CardDeclined({ code: "card_declined", declineCode: null, detail: "no" }) })
      const pipeline = yield* ChargePipeline
      assert.strictEqual((yield* pipeline.charge(request))._tag, "Declined")
      assert.strictEqual(yield* ledger.reopen({ chargeKeys: [request.chargeKey], from: ["declined"], actor: "test", reason: "new card" }), 1)
      assert.strictEqual((yield* pipeline.charge(request))._tag, "Succeeded")
      yield* cap.release(request.chargeKey, 1)
      assert.strictEqual((yield* cap.report())[0]?.reservedMinor, 1000n)
    }).pipe(Effect.provide(TestPipeline.layerStrictCap)))

  it.effect("never charges without a cap, and never above it", () =>
    Effect.gen(function*() {
      const cap = yield* SpendCap
      const pipeline = yield* ChargePipeline
      const missing = yield* pipeline.charge(chargeFor("a", "2025-06"))
      assert.strictEqual(missing._tag === "Rejected" ? missing.code : missing._tag, "cap_missing")
      yield* cap.open({ ...chargeFor("x", "2025-07"), expectedMinor: 10_000n, headroomPercent: 110 })
      const outcomes = yield* Effect.forEach(Array.from({ length: 50 }, (_, i) => chargeFor(`c${i}`, "2025-07")), pipeline.charge, {
        concurrency: "unbounded"
      })
      assert.strictEqual(outcomes.filter((outcome) => outcome._tag === "Succeeded").length, 11)
      assert.strictEqual(outcomes.filter((outcome) => outcome._tag === "Rejected").length, 39)
    }).pipe(Effect.provide(TestPipeline.layerStrictCap)))

  it.effect("refuses other terms for the same identity and charges nothing more", () =>
    Effect.gen(function*() {
      const pipeline = yield* ChargePipeline
      yield* pipeline.charge(chargeFor("a", "2025-07"))
      const error = yield* Effect.flip(pipeline.charge(chargeFor("a", "2025-07", { amountMinor: 2100 })))
      assert.strictEqual(error.reason._tag, "ChargeConflict")
      assert.strictEqual(yield* MockGateway.payments("a", "2025-07"), 1)
    }).pipe(Effect.provide(TestPipeline.layer)))

  it.effect("refuses a period that has not begun, unless the request allows it", () =>
    Effect.gen(function*() {
      const pipeline = yield* ChargePipeline
      const error = yield* Effect.flip(pipeline.charge(chargeFor("a", "2026-07", { allowFuture: false })))
      assert.strictEqual(error.reason._tag, "InvalidRequest")
      const outcome = yield* pipeline.charge(chargeFor("a", "2026-07"))
      assert.strictEqual(outcome._tag, "Succeeded")
    }).pipe(Effect.provide(TestPipeline.layer)))

  it.effect("uses our key whatever the sender's key says", () =>
    Effect.gen(function*() {
      const pipeline = yield* ChargePipeline
      for (const senderKey of ["socket-1", "socket-2", "ack-0"]) {
        assert.strictEqual((yield* pipeline.charge(chargeFor("a", "2025-07", { senderKey })))._tag, "Succeeded")
      }
      assert.strictEqual(yield* MockGateway.payments("a", "2025-07"), 1)
    }).pipe(Effect.provide(TestPipeline.layer)))

  it.effect("a second delivery waits for the one in work", () =>
    Effect.gen(function*() {
      yield* MockGateway.fail({ step: "create", when: "before", reason: new RateLimited({ retryAfterMs: 5000, limitReason: null }) })
      const pipeline = yield* ChargePipeline
      const both = yield* Effect.forkChild(
        Effect.all([pipeline.charge(chargeFor("a", "2025-07")), pipeline.charge(chargeFor("a", "2025-07"))], { concurrency: 2 })
      )
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual((yield* Fiber.join(both)).map((outcome) => outcome._tag), ["Succeeded", "Succeeded"])
      assert.strictEqual(yield* MockGateway.payments("a", "2025-07"), 1)
    }).pipe(Effect.provide(TestPipeline.layer)))
})
