/** A refund whose process stood still while its lease was renewed: what was answered long ago is asked for again before money moves. */
import { assert, describe, it } from "@effect/vitest"
import { Ledger, RefundGateway, RefundLedger, RefundRequest, SpendCap } from "@purser/core"
import { ChargePipeline, Refunds } from "@purser/engine"
import { chargeFor, MockGateway } from "@purser/testkit"
import { Effect, Layer, Result } from "effect"
import { TestClock } from "effect/testing"

const request = chargeFor("acme", "2026-07")
const wish = new RefundRequest({
  chargeKey: request.chargeKey, refundId: "1", amountMinor: 400 as typeof request.amountMinor, reason: null, actor: "test", note: "test"
})

/** The first renewal is carried out, and its answer is read a day later; `meanwhile` happens in between. */
const slowRenewal = (meanwhile: Effect.Effect<void, unknown, RefundLedger>) =>
  Layer.effect(RefundLedger, Effect.gen(function*() {
    const book = yield* RefundLedger
    let first = true
    return RefundLedger.of({
      ...book,
      extend: (lease) =>
        Effect.tap(book.extend(lease), () => {
          if (!first) return Effect.void
          first = false
          return Effect.andThen(TestClock.adjust("25 hours"), Effect.orDie(Effect.provideService(meanwhile, RefundLedger, book)))
        })
    })
  })).pipe(Layer.provide(RefundLedger.layerMemory))

/** Refunds once; how it ended, and how many refunds there are. */
const refundWith = (meanwhile: Effect.Effect<void, unknown, RefundLedger>) =>
  Effect.gen(function*() {
    yield* (yield* SpendCap).open({ ...request, expectedMinor: 1_000_000n, headroomPercent: 110 })
    yield* (yield* ChargePipeline).charge(request)
    const result = yield* Effect.result((yield* Refunds).refund(wish))
    const made = yield* (yield* RefundGateway).find({
      refundKey: wish.refundKey, chargeKey: request.chargeKey, namespace: request.namespace, refundId: "1", attempt: 1, paymentIntentId: "", chargeId: null,
      amountMinor: 400, currency: "usd", reason: null
    })
    return { result, made: made.length }
  }).pipe(Effect.provide(
    Layer.mergeAll(ChargePipeline.layer, Refunds.layer).pipe(
      Layer.provideMerge(slowRenewal(meanwhile)),
      Layer.provideMerge(Layer.mergeAll(Ledger.layerMemory, SpendCap.layerMemory, MockGateway.layer, RefundGateway.layerMemory))
    )
  ))

describe("a renewal that was answered too late", () => {
  it.effect("is asked for again, and the refund is made when nobody has taken it over", () =>
    Effect.gen(function*() {
      const { made, result } = yield* refundWith(Effect.void)
      assert.deepStrictEqual([Result.isSuccess(result) ? result.success._tag : result, made], ["Refunded", 1])
    }))

  it.effect("sends nothing when another has taken the refund over meanwhile", () =>
    Effect.gen(function*() {
      const takeOver = Effect.flatMap(RefundLedger, (book) =>
        Effect.map(book.takeExpired("another", 10), (taken) => assert.strictEqual(taken.length, 1)))
      const { made, result } = yield* refundWith(takeOver)
      assert.deepStrictEqual([Result.isFailure(result) && result.failure._tag === "RefundError" ? result.failure.reason._tag : result, made], ["RefundLeaseLost", 0])
    }))
})
