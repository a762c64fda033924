import { StripeSim } from "@purser/stripe-sim"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type Stripe from "stripe"
import { call, refusal, sdk, type Sim } from "./support.ts"

const daySeconds = 86_400
const startS = Date.UTC(2040, 0, 1) / 1000

/** A customer in the time of a clock of their own, with a card. */
const world = (sim: Sim, token = "tok_visa") =>
  Effect.gen(function*() {
    const stripe = sdk(sim)
    const clock = yield* call(() => stripe.testHelpers.testClocks.create({ frozen_time: startS, name: "January" }))
    const customer = yield* call(() => stripe.customers.create({ test_clock: clock.id }))
    const method = yield* call(() => stripe.paymentMethods.create({ type: "card", card: { token } }))
    yield* call(() => stripe.paymentMethods.attach(method.id, { customer: customer.id }))
    yield* call(() => stripe.customers.update(customer.id, { invoice_settings: { default_payment_method: method.id } }))
    return { stripe, clock, customer, method }
  })

const bill = (stripe: Stripe, customer: string, more: Stripe.InvoiceCreateParams = {}) =>
  Effect.gen(function*() {
    const invoice = yield* call(() => stripe.invoices.create({ customer, currency: "usd", ...more }))
    yield* call(() => stripe.invoices.addLines(invoice.id, { lines: [{ amount: 900 }] }))
    return invoice
  })

const advance = (stripe: Stripe, clock: string, toS: number) =>
  call(() => stripe.testHelpers.testClocks.advance(clock, { frozen_time: toS }))

describe("test clocks", () => {
  it.effect("date what belongs to their customers and stand still until they are advanced", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const { clock, customer, stripe } = yield* world(sim)
      assert.deepInclude(customer, { created: startS, test_clock: clock.id })
      yield* sim.advanceClock("40 days")
      const invoice = yield* bill(stripe, customer.id, { collection_method: "send_invoice", days_until_due: 30 })
      assert.deepInclude(invoice, { created: startS, test_clock: clock.id })
      yield* advance(stripe, clock.id, startS + 5 * daySeconds)
      const open = yield* call(() => stripe.invoices.finalizeInvoice(invoice.id))
      assert.strictEqual(open.due_date, startS + 35 * daySeconds)
      assert.strictEqual(open.status_transitions.finalized_at, startS + 5 * daySeconds)
      // An object of the real time was made after it, is older, and does not end the list too early.
      const real = yield* call(() => stripe.invoices.create({ customer: "cus_1" }))
      assert.isBelow(real.created, startS)
      const later = yield* call(() => stripe.invoices.list({ created: { gte: startS } }))
      assert.deepStrictEqual(later.data.map(({ id }) => id), [invoice.id])
    }))

  it.effect("say that they are advancing, are ready when asked again, and never go back", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const { clock, stripe } = yield* world(sim)
      const targetS = startS + daySeconds
      const answer = yield* advance(stripe, clock.id, targetS)
      assert.deepInclude(answer, { status: "advancing", status_details: { advancing: { target_frozen_time: targetS } } })
      assert.deepInclude(yield* call(() => stripe.testHelpers.testClocks.retrieve(clock.id)), { status: "ready", frozen_time: targetS })
      assert.strictEqual((yield* refusal(() => stripe.testHelpers.testClocks.advance(clock.id, { frozen_time: startS }))).param, "frozen_time")
      const events = yield* call(() => stripe.events.list({ type: "test_helpers.test_clock.*" }))
      assert.deepStrictEqual(events.data.map(({ type }) => type), [
        "test_helpers.test_clock.ready",
        "test_helpers.test_clock.advancing",
        "test_helpers.test_clock.created"
      ])
    }))

  it.effect("carry an invoice through Stripe's own collection and its retries, at their own times", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const { clock, customer, stripe } = yield* world(sim, "tok_chargeDeclinedInsufficientFunds")
      const invoice = yield* bill(stripe, customer.id, { auto_advance: true })
      yield* advance(stripe, clock.id, startS + 2 * daySeconds)
      const first = yield* call(() => stripe.invoices.retrieve(invoice.id))
      assert.deepInclude(first, { status: "open", attempt_count: 1, next_payment_attempt: startS + 3600 + 3 * daySeconds })
      assert.strictEqual(first.status_transitions.finalized_at, startS + 3600)
      const good = yield* call(() => stripe.paymentMethods.create({ type: "card", card: { token: "tok_visa" } }))
      yield* call(() => stripe.paymentMethods.attach(good.id, { customer: customer.id }))
      yield* call(() => stripe.customers.update(customer.id, { invoice_settings: { default_payment_method: good.id } }))
      yield* advance(stripe, clock.id, startS + 30 * daySeconds)
      const paid = yield* call(() => stripe.invoices.retrieve(invoice.id))
      assert.deepInclude(paid, { status: "paid", attempt_count: 2 })
      assert.strictEqual(paid.status_transitions.paid_at, startS + 3600 + 3 * daySeconds)
      assert.strictEqual(yield* sim.payments(customer.id, ""), 1)
    }))

  it.effect("settle the bank debits of their customers", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const { clock, customer, stripe } = yield* world(sim)
      const intent = yield* call(() =>
        stripe.paymentIntents.create({
          amount: 900,
          currency: "usd",
          customer: customer.id,
          payment_method: "pm_usBankAccount_success",
          allowed_payment_method_types: ["us_bank_account"],
          confirm: true
        })
      )
      yield* sim.advanceClock("30 days")
      assert.strictEqual((yield* call(() => stripe.paymentIntents.retrieve(intent.id))).status, "processing")
      yield* advance(stripe, clock.id, startS + 5 * daySeconds)
      assert.strictEqual((yield* call(() => stripe.paymentIntents.retrieve(intent.id))).status, "succeeded")
    }))

  it.effect("take their customers with them when they go", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const { clock, customer, stripe } = yield* world(sim)
      yield* call(() => stripe.customers.create({ email: "a@example.com" }))
      assert.deepStrictEqual((yield* call(() => stripe.customers.list({ test_clock: clock.id }))).data.map(({ id }) => id), [customer.id])
      assert.strictEqual((yield* call(() => stripe.customers.list({ email: "a@example.com" }))).data.length, 1)
      yield* call(() => stripe.testHelpers.testClocks.del(clock.id))
      assert.deepInclude(yield* call(() => stripe.customers.retrieve(customer.id)), { deleted: true })
      assert.deepStrictEqual((yield* call(() => stripe.testHelpers.testClocks.list())).data, [])
      assert.strictEqual((yield* refusal(() => stripe.customers.create({ test_clock: clock.id }))).code, "resource_missing")
    }))
})

describe("payment methods of a customer", () => {
  it.effect("are listed, updated, and gone when detached", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const { customer, method, stripe } = yield* world(sim)
      const other = yield* call(() => stripe.paymentMethods.create({ type: "card", card: { number: "4000000000000002" } }))
      yield* call(() => stripe.paymentMethods.attach(other.id, { customer: customer.id }))
      const ids = Effect.map(call(() => stripe.customers.listPaymentMethods(customer.id)), ({ data }) => data.map(({ id }) => id))
      assert.deepStrictEqual(yield* ids, [other.id, method.id])
      assert.deepStrictEqual((yield* call(() => stripe.paymentMethods.update(other.id, { metadata: { a: "b" } }))).metadata, { a: "b" })
      yield* call(() => stripe.paymentMethods.detach(other.id))
      assert.deepStrictEqual(yield* ids, [method.id])
      const standing = yield* call(() => stripe.paymentMethods.list({ customer: "cus_9" }))
      assert.strictEqual(standing.data.length, 1)
      assert.strictEqual((yield* refusal(() => stripe.customers.listPaymentMethods("cus_NONE"))).statusCode, 404)
    }))
})
