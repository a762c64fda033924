/** What a decline tells beside its code, and refunds by what Stripe answers. */
import { assert, describe, it } from "@effect/vitest"
import { RefundGateway, refundKeyOf, type RefundOrder } from "@purser/core"
import { StripeSim } from "@purser/stripe-sim"
import { Effect, Layer, Redacted } from "effect"
import { StripeClient, StripeRefunds } from "../src/index.ts"
import { answered, confirm, created, failing, gatewayAt, http, onSim, orderFor, secret, stub } from "./support.ts"

const order = orderFor()
const intent = {
  object: "payment_intent", id: "pi_1", status: "requires_payment_method", amount: 1234, amount_received: 0, currency: "usd", customer: "cus_1",
  latest_charge: "ch_9", payment_method: null, metadata: { charge_key: order.chargeKey, generation: "1" },
  last_payment_error: { type: "card_error", code: "card_declined", decline_code: "do_not_honor", charge: "ch_9", message: "no" }
}
const decline = (more: object = {}) => ({
  error: { type: "card_error", code: "card_declined", decline_code: "do_not_honor", charge: "ch_9", message: "no", payment_intent: intent, ...more }
})

describe("a decline", () => {
  it.live("tells the issuer's advice and the failed charge", () =>
    Effect.gen(function*() {
      const { result } = yield* answered(http(402, decline({ advice_code: "do_not_try_again" })), failing(confirm(order, "pi_1")))
      assert.deepInclude({ ...result.reason }, {
        _tag: "CardDeclined", declineCode: "do_not_honor", adviceCode: "do_not_try_again", declinedChargeId: "ch_9"
      })
      const bare = yield* answered(http(402, decline({ charge: undefined })), failing(confirm(order, "pi_1")))
      assert.deepInclude({ ...bare.result.reason }, { adviceCode: null, declinedChargeId: null })
    }))

  it.live("that is a stored answer is not believed: the object is read, which was paid since", () =>
    Effect.scoped(Effect.gen(function*() {
      const paid = { ...intent, status: "succeeded", amount_received: 1234, last_payment_error: null }
      const server = yield* stub(({ method, socket }) =>
        void socket.write(method === "POST" ? http(402, decline(), { "idempotent-replayed": "true" }) : http(200, paid)))
      const payment = yield* confirm(order, "pi_1").pipe(Effect.provide(gatewayAt(server.url)))
      assert.strictEqual(payment.status, "succeeded")
      assert.deepStrictEqual(server.requests.map(({ method }) => method), ["POST", "GET"])
    })))
})

const wish = (chargeId: string | null, paymentIntentId: string, amountMinor: number, refundId = "1"): RefundOrder => ({
  refundKey: refundKeyOf(order.chargeKey, refundId), chargeKey: order.chargeKey, namespace: "zmq-billing", refundId, attempt: 1, paymentIntentId, chargeId, amountMinor,
  currency: "usd", reason: "requested_by_customer"
})
const refundsOnSim = Layer.unwrap(Effect.map(StripeSim, ({ url }) =>
  StripeRefunds.layerWith.pipe(Layer.provide(StripeClient.layer({ key: Redacted.make(secret), url }))))).pipe(Layer.provideMerge(onSim()))

describe("refunds", () => {
  it.live("by charge or by PaymentIntent carry our metadata and are found by them; the same key again is the same refund", () =>
    Effect.gen(function*() {
      const gateway = yield* RefundGateway
      const payment = yield* created(order)
      const paid = yield* confirm(order, payment.id)
      const first = wish(paid.chargeId, payment.id, 400)
      assert.deepStrictEqual(yield* gateway.find(first), [])
      const made = yield* gateway.refund(first)
      assert.deepInclude({ ...made }, { status: "succeeded", amountMinor: 400, currency: "usd", refundKey: first.refundKey, chargeId: paid.chargeId })
      assert.strictEqual((yield* gateway.refund(first)).id, made.id)
      const second = yield* gateway.refund(wish(null, payment.id, 400, "2"))
      assert.notStrictEqual(second.id, made.id)
      assert.deepStrictEqual((yield* gateway.find(first)).map(({ id }) => id), [made.id])
      assert.strictEqual((yield* gateway.retrieve(first, made.id)).id, made.id)
      const [entry] = yield* (yield* StripeSim).books
      assert.deepInclude({ ...entry }, { refunds: 2, refundedMinor: 800 })
      const tooMuch = yield* Effect.flip(gateway.refund(wish(null, payment.id, 435, "3")))
      assert.deepStrictEqual([tooMuch.reason._tag, tooMuch.outcome], ["InvalidRequest", "not_charged"])
      yield* gateway.refund(wish(null, payment.id, 434, "4"))
      const nothing = yield* Effect.flip(gateway.refund(wish(null, payment.id, 1, "5")))
      assert.strictEqual(nothing.reason._tag === "InvalidRequest" ? nothing.reason.code : nothing.reason._tag, "charge_already_refunded")
    }).pipe(Effect.provide(refundsOnSim)))

  const refund = { object: "refund", id: "re_1", status: "succeeded", amount: 400, currency: "usd", charge: "ch_1", payment_intent: "pi_1", metadata: {} }
  for (
    const [name, bytes, reason] of [
      ["a status that we do not know", http(200, { ...refund, status: "brand_new" }), "UnexpectedAnswer"],
      ["no refund at all", http(200, { object: "charge" }), "UnexpectedAnswer"],
      ["500", http(500, { error: { type: "api_error", message: "no" } }), "GatewayUnavailable"],
      ["a proxy's page", http(502, "<html>"), "GatewayUnavailable"],
      ["another refund than the one asked for", http(200, { ...refund, id: "re_2" }), "UnexpectedAnswer"]
    ] as const
  ) {
    it.live(`leave it unknown: ${name}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const server = yield* stub(({ socket }) => void socket.write(bytes))
        const layer = StripeRefunds.layerWith.pipe(Layer.provide(StripeClient.layer({ key: Redacted.make(secret), url: server.url })))
        const error = yield* Effect.flip(Effect.flatMap(RefundGateway, (gateway) => gateway.retrieve(wish("ch_1", "pi_1", 400), "re_1")).pipe(Effect.provide(layer)))
        assert.deepStrictEqual([error.reason._tag, error._tag === "ChargeError" ? error.outcome : error._tag], [reason, "unknown"])
      })))
  }
})
