import { StripeSim } from "@purser/stripe-sim"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type Stripe from "stripe"
import { call, refusal, sdk, type Sim } from "./support.ts"

const pay = (sim: Sim, method = "pm_card_visa", key?: string) =>
  call(() =>
    sdk(sim).paymentIntents.create({
      amount: 900,
      currency: "usd",
      customer: "cus_1",
      payment_method: method,
      allowed_payment_method_types: ["card"],
      confirm: true,
      off_session: true
    }, key === undefined ? {} : { idempotencyKey: key })
  )

const types = (sim: Sim, params: Stripe.EventListParams = {}) =>
  Effect.map(call(() => sdk(sim).events.list({ limit: 100, ...params })), (list) => list.data.map(({ type }) => type))

describe("/v1/events", () => {
  it.effect("tell of every change, newest first, with the object as it was and the request that did it", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const intent = yield* pay(sim, "pm_card_visa", "key-1")
      yield* call(() => sdk(sim).refunds.create({ payment_intent: intent.id, amount: 100 }))
      assert.deepStrictEqual(yield* types(sim), [
        "charge.refunded",
        "refund.created",
        "payment_intent.succeeded",
        "charge.succeeded",
        "payment_intent.created"
      ])
      const list = yield* call(() => sdk(sim).events.list({ type: "charge.succeeded" }))
      const [event] = list.data
      assert.strictEqual(event?.request?.idempotency_key, "key-1")
      assert.match(event?.request?.id ?? "", /^req_/)
      assert.strictEqual(event?.type === "charge.succeeded" ? event.data.object.amount_refunded : undefined, 0)
      const again = yield* call(() => sdk(sim).events.retrieve(event!.id))
      assert.deepStrictEqual(again.data.object, event?.data.object)
    }))

  it.effect("follow each resource through its life", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      const customer = yield* call(() => stripe.customers.create({ name: "A" }))
      const method = yield* call(() => stripe.paymentMethods.create({ type: "card", card: { token: "tok_visa" } }))
      yield* call(() => stripe.paymentMethods.attach(method.id, { customer: customer.id }))
      yield* call(() => stripe.customers.update(customer.id, { invoice_settings: { default_payment_method: method.id } }))
      const invoice = yield* call(() => stripe.invoices.create({ customer: customer.id, currency: "usd" }))
      yield* call(() => stripe.invoiceItems.create({ customer: customer.id, invoice: invoice.id, amount: 500, currency: "usd" }))
      yield* call(() => stripe.invoices.finalizeInvoice(invoice.id))
      yield* call(() => stripe.invoices.pay(invoice.id))
      yield* call(() => stripe.paymentMethods.detach(method.id))
      yield* call(() => stripe.customers.del(customer.id))
      const canceled = yield* call(() => stripe.paymentIntents.create({ amount: 500, currency: "usd" }))
      yield* call(() => stripe.paymentIntents.cancel(canceled.id))
      yield* refusal(() => stripe.charges.create({ amount: 100, currency: "usd", source: "tok_chargeDeclined" }))
      assert.deepStrictEqual((yield* types(sim)).toReversed(), [
        "customer.created",
        "payment_method.attached",
        "customer.updated",
        "invoice.created",
        "invoiceitem.created",
        "invoice.updated",
        "payment_intent.created",
        "invoice.finalized",
        "charge.succeeded",
        "payment_intent.succeeded",
        "invoice.updated",
        "invoice.paid",
        "invoice.payment_succeeded",
        "invoice_payment.paid",
        "payment_method.detached",
        "customer.deleted",
        "payment_intent.created",
        "payment_intent.canceled",
        "charge.failed"
      ])
      const paid = yield* call(() => stripe.events.list({ type: "invoice.paid" }))
      const object = paid.data[0]?.type === "invoice.paid" ? paid.data[0].data.object : undefined
      assert.deepInclude(object, { id: invoice.id, status: "paid", amount_paid: 500 })
    }))

  it.effect("are filtered by type, by types, by time, and paged", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      yield* pay(sim)
      yield* sim.advanceClock("1 hour")
      yield* refusal(() =>
        sdk(sim).paymentIntents.create({
          amount: 900,
          currency: "usd",
          payment_method: "pm_card_chargeDeclined",
          allowed_payment_method_types: ["card"],
          confirm: true
        })
      )
      assert.deepStrictEqual(yield* types(sim, { type: "charge.*" }), ["charge.failed", "charge.succeeded"])
      assert.deepStrictEqual(yield* types(sim, { types: ["payment_intent.succeeded", "payment_intent.payment_failed"] }), [
        "payment_intent.payment_failed",
        "payment_intent.succeeded"
      ])
      const hourAgoS = Math.floor((yield* sim.nowMs) / 1000) - 1800
      assert.strictEqual((yield* types(sim, { created: { lt: hourAgoS } })).length, 3)
      const all = yield* call(() => sdk(sim).events.list({ limit: 2 }).autoPagingToArray({ limit: 100 }))
      assert.strictEqual(new Set(all.map(({ id }) => id)).size, 6)
      assert.strictEqual((yield* refusal(() => sdk(sim).events.list({ type: "*", types: ["charge.failed"] }))).code, "parameters_exclusive")
    }))

  it.effect("a replayed answer makes none, and they end after 30 days", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      yield* pay(sim, "pm_card_visa", "k")
      yield* pay(sim, "pm_card_visa", "k")
      const list = yield* call(() => sdk(sim).events.list())
      assert.strictEqual(list.data.length, 3)
      yield* sim.advanceClock("31 days")
      assert.deepStrictEqual(yield* types(sim), [])
      assert.strictEqual((yield* refusal(() => sdk(sim).events.retrieve(list.data[0]!.id))).statusCode, 404)
    }))

  it.effect("the oldest go when the limit is reached", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make({ eventsLimit: 4 })
      const made: Array<string> = []
      for (let n = 0; n < 9; n++) made.push((yield* call(() => sdk(sim).paymentIntents.create({ amount: 100 + n, currency: "usd" }))).id)
      const left = yield* call(() => sdk(sim).events.list({ limit: 2 }).autoPagingToArray({ limit: 100 }))
      const intents = left.map((event) => event.type === "payment_intent.created" ? event.data.object.id : "")
      assert.deepStrictEqual(intents, made.slice(-intents.length).toReversed())
      assert.isAtMost(intents.length, 8)
      assert.isAtLeast(intents.length, 4)
    }))
})
