/**
 * A refund in the hands of more than one process: a lease whose renewal was answered long ago is asked for again before money moves,
 * and what an earlier holder may have sent is looked for before anything is sent.
 */
import { assert, describe, it } from "@effect/vitest"
import { ChargeError, Ledger, PermissionDenied, RefundGateway, RefundLedger, RefundRequest, SpendCap } from "@purser/core"
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

/** How many refunds there are, by the processor. */
const madeOf = Effect.map(
  Effect.flatMap(RefundGateway, (gateway) => gateway.find({
    refundKey: wish.refundKey, chargeKey: request.chargeKey, namespace: request.namespace, refundId: "1", attempt: 1, paymentIntentId: "", chargeId: null,
    amountMinor: 400, currency: "usd", reason: null
  })),
  (made) => made.length
)

const payCharge = Effect.gen(function*() {
  yield* (yield* SpendCap).open({ ...request, expectedMinor: 1_000_000n, headroomPercent: 110 })
  yield* (yield* ChargePipeline).charge(request)
})

const engineOn = (book: Layer.Layer<RefundLedger, never, Ledger>, processor: Layer.Layer<RefundGateway>) =>
  Layer.mergeAll(ChargePipeline.layer, Refunds.layer).pipe(
    Layer.provideMerge(book),
    Layer.provideMerge(Layer.mergeAll(Ledger.layerMemory, SpendCap.layerMemory, MockGateway.layer, processor))
  )

/** Refunds once; how it ended, and how many refunds there are. */
const refundWith = (meanwhile: Effect.Effect<void, unknown, RefundLedger>) =>
  Effect.gen(function*() {
    yield* payCharge
    const result = yield* Effect.result((yield* Refunds).refund(wish))
    return { result, made: yield* madeOf }
  }).pipe(Effect.provide(engineOn(slowRenewal(meanwhile), RefundGateway.layerMemory)))

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

/** A processor that has forgotten its keys by the next call: the same order again is another refund. */
const forgetful = Layer.effect(RefundGateway, Effect.gen(function*() {
  const inner = yield* RefundGateway
  let calls = 0
  return RefundGateway.of({ ...inner, refund: (order) => Effect.suspend(() => inner.refund({ ...order, attempt: calls++ })) })
})).pipe(Layer.provide(RefundGateway.layerMemory))

describe("a refund whose process died once it was made, and whose key is forgotten", () => {
  const engine = engineOn(RefundLedger.layerMemory, forgetful)
  const state = Effect.map(Effect.flatMap(RefundLedger, (book) => book.find(wish.refundKey)), (record) => record?.state)
  for (
    const [name, goOn] of [
      ["a sweep", Effect.flatMap(Refunds, ({ sweepOnce }) => Effect.asVoid(sweepOnce))],
      ["whoever asks for it again", Effect.flatMap(Refunds, ({ refund }) => Effect.asVoid(refund(wish)))]
    ] as const
  ) {
    it.effect(`is found by ${name}, and not made a second time`, () =>
      Effect.gen(function*() {
        yield* payCharge
        const claim = yield* (yield* RefundLedger).claim(wish, "died")
        if (claim._tag !== "Claimed") return yield* Effect.die(new Error("not claimed"))
        const { refund: claimed } = claim
        yield* (yield* RefundGateway).refund({ ...claimed, refundKey: wish.refundKey })
        yield* TestClock.adjust("25 hours")
        yield* goOn
        assert.deepStrictEqual([yield* madeOf, yield* state], [1, "succeeded"])
      }).pipe(Effect.provide(engine)))
  }
})

describe("a processor that lets nobody refund any more", () => {
  const denied = Layer.effect(RefundGateway, Effect.map(RefundGateway, (inner) =>
    RefundGateway.of({
      ...inner,
      refund: ({ chargeKey }) => Effect.fail(new ChargeError({ reason: new PermissionDenied({ detail: "the key was taken away" }), chargeKey, requestId: null }))
    }))).pipe(Layer.provide(RefundGateway.layerMemory))
  const refund = Effect.flatMap(Refunds, ({ refund }) => refund(wish))

  it.effect("refuses what was never sent, and proves nothing of what an earlier holder may have sent", () =>
    Effect.gen(function*() {
      yield* payCharge
      assert.strictEqual((yield* refund)._tag, "RefundRefused")
    }).pipe(
      Effect.provide(engineOn(RefundLedger.layerMemory, denied)),
      Effect.andThen(Effect.gen(function*() {
        yield* payCharge
        yield* (yield* RefundLedger).claim(wish, "died")
        yield* TestClock.adjust("1 hour")
        const error = yield* Effect.flip(refund)
        assert.strictEqual(error._tag === "ChargeError" ? error.outcome : error._tag, "unknown")
      }).pipe(Effect.provide(engineOn(RefundLedger.layerMemory, denied))))
    ))
})
