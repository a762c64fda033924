import { StripeSim } from "@purser/stripe-sim"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type Stripe from "stripe"
import { call, raw, refusal, sdk, type Sim } from "./support.ts"

const identity = { customer_id: "acme", billing_period: "2026-07" }

/** An invoice with two lines, not finalized. */
const draft = (sim: Sim, customer = "cus_1") =>
  Effect.gen(function*() {
    const stripe = sdk(sim)
    const invoice = yield* call(() => stripe.invoices.create({ customer, auto_advance: false, metadata: identity, currency: "usd" }))
    yield* call(() =>
      stripe.invoiceItems.create({ customer, invoice: invoice.id, amount: 1500, currency: "usd", description: "base", metadata: { item: "base" } })
    )
    yield* call(() => stripe.invoices.addLines(invoice.id, { lines: [{ amount: 700, description: "seats", metadata: { item: "seats" } }] }))
    return invoice.id
  })

describe("invoices", () => {
  it.effect("go from draft to paid; lines keep their metadata and the total is their sum", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      const id = yield* draft(sim)
      const before = yield* call(() => stripe.invoices.retrieve(id))
      assert.deepInclude(before, { status: "draft", total: 2200, amount_due: 2200, amount_remaining: 2200, number: null })
      assert.deepStrictEqual(before.lines.data.map((line) => [line.amount, line.metadata]), [
        [1500, { item: "base" }],
        [700, { item: "seats" }]
      ])
      assert.strictEqual(before.lines.data[0]?.quantity_decimal?.toString(), "1")
      const open = yield* call(() => stripe.invoices.finalizeInvoice(id, { expand: ["payments", "confirmation_secret"] }))
      assert.deepInclude(open, { status: "open", attempted: false, amount_paid: 0 })
      assert.isString(open.number)
      const intent = String(open.payments?.data[0]?.payment.payment_intent)
      assert.deepInclude(yield* call(() => stripe.paymentIntents.retrieve(intent)), { status: "requires_payment_method", amount: 2200 })
      const paid = yield* call(() => stripe.invoices.pay(id, { expand: ["payments"] }))
      assert.deepInclude(paid, { status: "paid", amount_paid: 2200, amount_remaining: 0, attempt_count: 1 })
      assert.strictEqual(paid.payments?.data[0]?.status, "paid")
      assert.isNumber(paid.status_transitions.paid_at)
      assert.sameDeepMembers([...(yield* sim.books)], [
        { customer: "acme", billingPeriod: "2026-07", item: "base", payments: 1, amountMinor: 1500, currency: "usd" },
        { customer: "acme", billingPeriod: "2026-07", item: "seats", payments: 1, amountMinor: 700, currency: "usd" }
      ])
      const byIntent = yield* call(() =>
        stripe.invoicePayments.list({ payment: { type: "payment_intent", payment_intent: intent } })
      )
      assert.strictEqual(byIntent.data[0]?.invoice, id)
    }))

  it.effect("take the customer's balance into account when they are finalized, not before, and give it back when they are voided", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      const balance = Effect.map(call(() => stripe.customers.retrieve("cus_1")), (customer) => customer.deleted ? undefined : customer.balance)
      const finalized = (balance: number) =>
        Effect.gen(function*() {
          yield* call(() => stripe.customers.update("cus_1", { balance }))
          const id = yield* draft(sim)
          assert.deepInclude(yield* call(() => stripe.invoices.retrieve(id)), { total: 2200, amount_due: 2200, starting_balance: balance, ending_balance: null })
          return yield* call(() => stripe.invoices.finalizeInvoice(id, { expand: ["payments"] }))
        })
      const part = yield* finalized(-300)
      assert.deepInclude(part, { status: "open", total: 2200, amount_due: 1900, amount_remaining: 1900, starting_balance: -300, ending_balance: 0 })
      assert.strictEqual(part.payments?.data[0]?.amount_requested, 1900)
      assert.strictEqual(yield* balance, 0)
      yield* call(() => stripe.invoices.voidInvoice(part.id))
      assert.strictEqual(yield* balance, -300)
      const whole = yield* finalized(-3000)
      assert.deepInclude(whole, { status: "paid", amount_due: 0, amount_paid: 0, starting_balance: -3000, ending_balance: -800 })
      assert.strictEqual(yield* balance, -800)
      assert.isTrue((yield* sim.books).every(({ payments }) => payments === 0))
      const owed = yield* finalized(300)
      assert.deepInclude(owed, { status: "open", amount_due: 2500, ending_balance: 0 })
      assert.deepInclude(yield* call(() => stripe.invoices.pay(owed.id)), { status: "paid", amount_paid: 2500 })
      assert.strictEqual((yield* sim.books).reduce((sum, { amountMinor }) => sum + amountMinor, 0), 2500)
      const credit = yield* call(() => stripe.invoices.create({ customer: "cus_1", currency: "usd" }))
      yield* call(() => stripe.invoices.addLines(credit.id, { lines: [{ amount: -100 }] }))
      assert.deepInclude(yield* call(() => stripe.invoices.finalizeInvoice(credit.id)), { status: "paid", amount_due: 0, ending_balance: -100 })
      assert.strictEqual(yield* balance, -100)
    }))

  it.effect("are paid once, whatever key or way is used", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      const id = yield* draft(sim)
      const open = yield* call(() => stripe.invoices.finalizeInvoice(id, { expand: ["payments"] }))
      yield* call(() => stripe.invoices.pay(id, {}, { idempotencyKey: "p1" }))
      const again = yield* refusal(() => stripe.invoices.pay(id, {}, { idempotencyKey: "p2" }))
      assert.deepInclude(again, { statusCode: 400, message: "Invoice is already paid" })
      const direct = yield* refusal(() =>
        stripe.paymentIntents.confirm(String(open.payments?.data[0]?.payment.payment_intent), { payment_method: "pm_card_visa" })
      )
      assert.strictEqual(direct.code, "payment_intent_unexpected_state")
      assert.strictEqual(yield* sim.payments("acme", "2026-07", "base"), 1)
      assert.strictEqual((yield* call(() => stripe.invoices.pay(id, {}, { idempotencyKey: "p1" }))).status, "paid")
    }))

  it.effect("a declined payment leaves it open, with the attempt counted, and another card pays it", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      const id = yield* draft(sim, "cus_7_chargeDeclinedInsufficientFunds")
      yield* call(() => stripe.invoices.finalizeInvoice(id))
      const declined = yield* refusal(() => stripe.invoices.pay(id))
      assert.deepInclude(declined, { statusCode: 402, decline_code: "insufficient_funds" })
      assert.strictEqual(declined.payment_intent?.status, "requires_payment_method")
      assert.deepInclude(yield* call(() => stripe.invoices.retrieve(id)), { status: "open", attempt_count: 1, attempted: true })
      assert.strictEqual((yield* call(() => stripe.invoices.pay(id, { payment_method: "pm_card_visa" }))).attempt_count, 2)
    }))

  it.effect("ask for the customer when the card does, and follow the PaymentIntent", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      const id = yield* draft(sim)
      const open = yield* call(() => stripe.invoices.finalizeInvoice(id, { expand: ["payments"] }))
      const asks = yield* refusal(() => stripe.invoices.pay(id, { payment_method: "pm_card_threeDSecure2Required", off_session: false }))
      assert.deepInclude(asks, { statusCode: 402, code: "invoice_payment_intent_requires_action" })
      assert.isTrue(yield* sim.settle(String(open.payments?.data[0]?.payment.payment_intent)))
      assert.strictEqual((yield* call(() => stripe.invoices.retrieve(id))).status, "paid")
    }))

  it.effect("are not changed once finalized; drafts are, and can be deleted", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      const id = yield* draft(sim)
      const lines = yield* call(() => stripe.invoices.listLineItems(id, { limit: 1 }))
      assert.isTrue(lines.has_more)
      const all = yield* call(() => stripe.invoices.listLineItems(id, { limit: 1 }).autoPagingToArray({ limit: 10 }))
      assert.deepStrictEqual(all.map(({ description }) => description), ["base", "seats"])
      const less = yield* call(() => stripe.invoices.removeLines(id, { lines: [{ id: all[1]!.id, behavior: "delete" }] }))
      assert.strictEqual(less.total, 1500)
      const items = yield* call(() => stripe.invoiceItems.list({ invoice: id }))
      yield* call(() => stripe.invoiceItems.update(items.data[0]!.id, { amount: 1600 }))
      yield* call(() => stripe.invoices.update(id, { description: "July", metadata: { note: "n" } }))
      const open = yield* call(() => stripe.invoices.finalizeInvoice(id))
      assert.deepInclude(open, { total: 1600, description: "July", metadata: { ...identity, note: "n" } })
      const frozen = [
        yield* refusal(() => stripe.invoices.addLines(id, { lines: [{ amount: 100 }] })),
        yield* refusal(() => stripe.invoiceItems.create({ customer: "cus_1", invoice: id, amount: 100, currency: "usd" })),
        yield* refusal(() => stripe.invoiceItems.del(items.data[0]!.id))
      ]
      assert.deepStrictEqual(frozen.map(({ code }) => code), Array(3).fill("invoice_not_editable"))
      assert.include((yield* refusal(() => stripe.invoices.finalizeInvoice(id))).message, "already finalized")
      assert.strictEqual((yield* refusal(() => stripe.invoices.del(id))).statusCode, 400)
      const other = yield* draft(sim)
      assert.isTrue((yield* call(() => stripe.invoices.del(other))).deleted)
      assert.strictEqual((yield* refusal(() => stripe.invoices.retrieve(other))).statusCode, 404)
      assert.deepStrictEqual((yield* call(() => stripe.invoices.list())).data.map((one) => one.id), [id])
    }))

  it.effect("void ends them, out of band pays them without money, uncollectible keeps them payable", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      const ids = yield* Effect.forEach([1, 2, 3], () => Effect.tap(draft(sim), (id) => call(() => stripe.invoices.finalizeInvoice(id))))
      const [first, second, third] = ids as [string, string, string]
      const voided = yield* call(() => stripe.invoices.voidInvoice(first, { expand: ["payments"] }))
      assert.strictEqual(voided.status, "void")
      const intent = yield* call(() => stripe.paymentIntents.retrieve(String(voided.payments?.data[0]?.payment.payment_intent)))
      assert.strictEqual(intent.status, "canceled")
      assert.strictEqual((yield* refusal(() => stripe.invoices.pay(first))).statusCode, 400)
      assert.include((yield* refusal(() => stripe.invoices.voidInvoice(first))).message, "isn't open")
      assert.deepInclude(yield* call(() => stripe.invoices.pay(second, { paid_out_of_band: true })), { status: "paid" })
      assert.strictEqual(yield* sim.payments("acme", "2026-07", "base"), 0)
      assert.strictEqual((yield* call(() => stripe.invoices.markUncollectible(third))).status, "uncollectible")
      assert.strictEqual((yield* call(() => stripe.invoices.pay(third))).status, "paid")
      assert.strictEqual(yield* sim.payments("acme", "2026-07", "base"), 1)
      const statuses = yield* call(() => stripe.invoices.list({ status: "paid" }))
      assert.deepStrictEqual(statuses.data.map(({ id }) => id), [third, second])
    }))

  it.effect("take waiting items only when told to, and refuse an empty bill and a currency that does not fit", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      yield* call(() => stripe.invoiceItems.create({ customer: "cus_1", amount: 900, currency: "eur" }))
      const empty = yield* call(() => stripe.invoices.create({ customer: "cus_1" }))
      assert.strictEqual(empty.lines.data.length, 0)
      assert.strictEqual((yield* refusal(() => stripe.invoices.finalizeInvoice(empty.id))).code, "invoice_no_customer_line_items")
      assert.strictEqual((yield* call(() => stripe.invoiceItems.list({ customer: "cus_1", pending: true }))).data.length, 1)
      const full = yield* call(() => stripe.invoices.create({ customer: "cus_1", pending_invoice_items_behavior: "include" }))
      assert.deepInclude(full, { total: 900, currency: "eur" })
      assert.strictEqual((yield* call(() => stripe.invoiceItems.list({ customer: "cus_1", pending: true }))).data.length, 0)
      const other = yield* refusal(() => stripe.invoiceItems.create({ customer: "cus_1", invoice: full.id, amount: 1, currency: "usd" }))
      assert.strictEqual(other.param, "currency")
      const tiny = yield* call(() => stripe.invoices.create({ customer: "cus_2", currency: "usd" }))
      yield* call(() => stripe.invoices.addLines(tiny.id, { lines: [{ amount: 10 }] }))
      assert.strictEqual((yield* refusal(() => stripe.invoices.finalizeInvoice(tiny.id))).code, "amount_too_small")
    }))

  it.effect("lines sent twice are there twice, and once with one key: a retry past the window doubles them", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      const invoice = yield* call(() => stripe.invoices.create({ customer: "cus_1", currency: "usd" }))
      const add = call(() =>
        stripe.invoices.addLines(invoice.id, { lines: [{ amount: 500, metadata: { item: "a" } }] }, { idempotencyKey: "line" })
      )
      yield* add
      assert.strictEqual((yield* add).total, 500)
      yield* sim.advanceClock("25 hours")
      assert.strictEqual((yield* add).total, 1000)
    }))

  it.effect("that advance by themselves are collected by Stripe, and tried again after a decline", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      const make = (customer: string) =>
        Effect.gen(function*() {
          const made = yield* call(() => stripe.invoices.create({ customer, auto_advance: true, currency: "usd" }))
          yield* call(() => stripe.invoices.addLines(made.id, { lines: [{ amount: 500 }] }))
          return made.id
        })
      const good = yield* make("cus_1")
      const bad = yield* make("cus_2_chargeDeclined")
      yield* sim.advanceClock("61 minutes")
      assert.strictEqual((yield* call(() => stripe.invoices.retrieve(good))).status, "paid")
      const open = yield* call(() => stripe.invoices.retrieve(bad))
      assert.deepInclude(open, { status: "open", attempt_count: 1 })
      assert.isNumber(open.next_payment_attempt)
      yield* sim.advanceClock("20 days")
      assert.deepInclude(yield* call(() => stripe.invoices.retrieve(bad)), { status: "open", attempt_count: 4, next_payment_attempt: null })
    }))

  it.effect("meet the faults: a pay whose answer is lost was paid", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const id = yield* draft(sim)
      yield* call(() => sdk(sim).invoices.finalizeInvoice(id))
      yield* sim.faults.add({
        match: { path: "/v1/invoices/*/pay", metadata: identity },
        action: { kind: "reset", at: "after" }
      })
      assert.strictEqual((yield* Effect.flip(raw(sim, `/v1/invoices/${id}/pay`, { body: "", key: "p" })))._tag, "Broken")
      const again: Stripe.Invoice = (yield* raw(sim, `/v1/invoices/${id}/pay`, { body: "", key: "p" })).json
      assert.strictEqual(again.status, "paid")
      assert.strictEqual(yield* sim.payments("acme", "2026-07", "seats"), 1)
      const last = (yield* sim.requests).find((entry) => entry.paymentsMoved === 1)
      assert.deepInclude(last, { movedMinor: 2200, faults: ["reset"] })
    }))
})
