import { netMinor, StripeSim } from "@purser/stripe-sim"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { call, raw, refusal, sdk, type Sim } from "./support.ts"

const paid = (sim: Sim, paymentMethod = "pm_card_visa", amount = 3000) =>
  call(() =>
    sdk(sim).paymentIntents.create({
      amount,
      currency: "usd",
      payment_method: paymentMethod,
      allowed_payment_method_types: ["card"],
      confirm: true,
      off_session: true,
      metadata: { customer_id: "acme", billing_period: "2026-07" }
    })
  )

describe("/v1/refunds", () => {
  it.effect("gives back part by part, never more than is left", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      const intent = yield* paid(sim)
      const first = yield* call(() => stripe.refunds.create({ payment_intent: intent.id, amount: 1000, reason: "duplicate" }))
      assert.deepInclude(first, { status: "succeeded", amount: 1000, payment_intent: intent.id, charge: intent.latest_charge, reason: "duplicate" })
      const over = yield* refusal(() => stripe.refunds.create({ charge: String(intent.latest_charge), amount: 2001 }))
      assert.deepInclude(over, { statusCode: 400, param: "amount" })
      assert.include(over.message, "greater than unrefunded amount on charge ($20.00")
      // Two equal partial refunds are two refunds.
      yield* call(() => stripe.refunds.create({ charge: String(intent.latest_charge), amount: 1000 }))
      const rest = yield* call(() => stripe.refunds.create({ payment_intent: intent.id }))
      assert.strictEqual(rest.amount, 1000)
      const done = yield* refusal(() => stripe.refunds.create({ payment_intent: intent.id }))
      assert.deepInclude(done, { statusCode: 400, code: "charge_already_refunded" })
      const charge = yield* call(() => stripe.charges.retrieve(String(intent.latest_charge), { expand: ["refunds"] }))
      assert.deepInclude(charge, { refunded: true, amount_refunded: 3000, amount: 3000 })
      assert.strictEqual(charge.refunds?.data.length, 3)
      const [entry] = yield* sim.books
      assert.deepInclude(entry, { payments: 1, amountMinor: 3000, refunds: 3, refundedMinor: 3000 })
      assert.strictEqual(netMinor(entry!), 0)
    }))

  it.effect("one key gives back once", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const intent = yield* paid(sim)
      const body = `payment_intent=${intent.id}&amount=1000`
      const first = yield* raw(sim, "/v1/refunds", { body, key: "r" })
      const again = yield* raw(sim, "/v1/refunds", { body, key: "r" })
      assert.strictEqual(again.json.id, first.json.id)
      assert.strictEqual(again.headers["idempotent-replayed"], "true")
      assert.strictEqual((yield* sim.books)[0]?.refundedMinor, 1000)
    }))

  it.effect("lists by charge, by PaymentIntent and in all", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      const [one, other] = [yield* paid(sim), yield* paid(sim)]
      const a = yield* call(() => stripe.refunds.create({ payment_intent: one.id, amount: 100, metadata: { n: "1" } }))
      const b = yield* call(() => stripe.refunds.create({ payment_intent: other.id, amount: 100 }))
      const c = yield* call(() => stripe.refunds.create({ payment_intent: one.id, amount: 100 }))
      const ids = (params: { charge?: string; payment_intent?: string; limit?: number }) =>
        Effect.map(call(() => stripe.refunds.list(params).autoPagingToArray({ limit: 100 })), (list) => list.map(({ id }) => id))
      assert.deepStrictEqual(yield* ids({ payment_intent: one.id }), [c.id, a.id])
      assert.deepStrictEqual(yield* ids({ charge: String(other.latest_charge) }), [b.id])
      assert.deepStrictEqual(yield* ids({ limit: 1 }), [c.id, b.id, a.id])
      const updated = yield* call(() => stripe.refunds.update(a.id, { metadata: { n: "2" } }))
      assert.deepStrictEqual((yield* call(() => stripe.refunds.retrieve(a.id))).metadata, updated.metadata)
      assert.strictEqual((yield* refusal(() => stripe.refunds.retrieve("re_none"))).statusCode, 404)
    }))

  it.effect("refuses what was never paid, what is not there and what is named twice", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      const open = yield* call(() => stripe.paymentIntents.create({ amount: 500, currency: "usd" }))
      assert.include((yield* refusal(() => stripe.refunds.create({ payment_intent: open.id }))).message, "does not have a successful charge")
      assert.strictEqual((yield* refusal(() => stripe.refunds.create({ charge: "ch_none" }))).code, "resource_missing")
      assert.strictEqual((yield* refusal(() => stripe.refunds.create({}))).code, "parameter_missing")
      const intent = yield* paid(sim)
      const both = { payment_intent: intent.id, charge: String(intent.latest_charge) }
      assert.strictEqual((yield* refusal(() => stripe.refunds.create(both))).code, "parameters_exclusive")
      const failed = yield* refusal(() => stripe.charges.create({ amount: 100, currency: "usd", source: "tok_chargeDeclined" }))
      assert.strictEqual((yield* refusal(() => stripe.refunds.create({ charge: failed.charge! }))).code, "charge_not_refundable")
    }))

  it.effect("may wait, be canceled while it waits, or fail after it had succeeded", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      const waiting = yield* paid(sim, "pm_card_pendingRefund")
      const failing = yield* paid(sim, "pm_card_refundFail")
      const pending = yield* call(() => stripe.refunds.create({ payment_intent: waiting.id, amount: 1000 }))
      const canceled = yield* call(() => stripe.refunds.create({ payment_intent: waiting.id, amount: 500 }))
      const lost = yield* call(() => stripe.refunds.create({ payment_intent: failing.id }))
      assert.deepStrictEqual([pending.status, lost.status], ["pending", "succeeded"])
      assert.strictEqual((yield* call(() => stripe.refunds.cancel(canceled.id))).status, "canceled")
      yield* sim.advanceClock("2 hours")
      assert.strictEqual((yield* call(() => stripe.refunds.retrieve(pending.id))).status, "succeeded")
      assert.deepInclude(yield* call(() => stripe.refunds.retrieve(lost.id)), { status: "failed", failure_reason: "expired_or_canceled_card" })
      assert.strictEqual((yield* call(() => stripe.refunds.retrieve(canceled.id))).status, "canceled")
      assert.deepInclude(yield* call(() => stripe.charges.retrieve(String(failing.latest_charge))), { refunded: false, amount_refunded: 0 })
      assert.deepInclude((yield* sim.books)[0], { payments: 2, refunds: 1, refundedMinor: 1000 })
      // What failed can be tried again.
      assert.strictEqual((yield* call(() => stripe.refunds.create({ payment_intent: failing.id }))).amount, 3000)
    }))
})
