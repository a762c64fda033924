import { StripeSim } from "@purser/stripe-sim"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { call, raw, refusal, sdk } from "./support.ts"

describe("/v1/charges", () => {
  it.effect("one key charges once within the window and again after it", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const charge = call(() =>
        sdk(sim).charges.create(
          { amount: 1999, currency: "usd", customer: "cus_1", metadata: { customer_id: "acme", billing_period: "2026-07" } },
          { idempotencyKey: "acme-2026-07" }
        )
      )
      const first = yield* charge
      assert.strictEqual((yield* charge).id, first.id)
      assert.strictEqual(yield* sim.payments("acme", "2026-07"), 1)
      yield* sim.advanceClock("25 hours")
      assert.notStrictEqual((yield* charge).id, first.id)
      assert.strictEqual(yield* sim.payments("acme", "2026-07"), 2)
    }))

  it.effect("one key with another amount is refused, a decline is replayed", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      yield* call(() => sdk(sim).charges.create({ amount: 100, currency: "usd", customer: "cus_1" }, { idempotencyKey: "a" }))
      const other = yield* refusal(() =>
        sdk(sim).charges.create({ amount: 200, currency: "usd", customer: "cus_1" }, { idempotencyKey: "a" })
      )
      assert.strictEqual(other.type, "StripeIdempotencyError")
      const decline = () =>
        sdk(sim).charges.create(
          { amount: 100, currency: "usd", customer: "cus_2_chargeDeclinedInsufficientFunds" },
          { idempotencyKey: "d" }
        )
      const first = yield* refusal(decline)
      const again = yield* refusal(decline)
      assert.deepInclude(again, { decline_code: "insufficient_funds", charge: first.charge! })
      assert.strictEqual(again.headers?.["idempotent-replayed"], "true")
    }))

  it.effect("lists by customer, by time and page by page", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      const ids: Array<string> = []
      for (let n = 0; n < 7; n++) {
        const made = yield* call(() => stripe.charges.create({ amount: 100 + n, currency: "usd", customer: "cus_1" }))
        ids.unshift(made.id)
        yield* call(() => stripe.charges.create({ amount: 100, currency: "usd", customer: "cus_2" }))
        yield* sim.advanceClock("1 hour")
      }
      const all = yield* call(() => stripe.charges.list({ customer: "cus_1", limit: 3 }).autoPagingToArray({ limit: 100 }))
      assert.deepStrictEqual(all.map(({ id }) => id), ids)
      const page = yield* call(() => stripe.charges.list({ customer: "cus_1", limit: 3 }))
      assert.isTrue(page.has_more)
      const back = yield* call(() => stripe.charges.list({ customer: "cus_1", limit: 2, ending_before: ids[4]! }))
      assert.deepStrictEqual(back.data.map(({ id }) => id), ids.slice(2, 4))
      const gte = all[2]!.created
      const recent = yield* call(() => stripe.charges.list({ customer: "cus_1", created: { gte } }))
      assert.deepStrictEqual(recent.data.map(({ id }) => id), ids.slice(0, 3))
      const window = yield* call(() => stripe.charges.list({ customer: "cus_1", created: { gt: all[4]!.created, lt: all[1]!.created } }))
      assert.deepStrictEqual(window.data.map(({ id }) => id), ids.slice(2, 4))
      const unknown = yield* refusal(() => stripe.charges.list({ starting_after: "ch_none" }))
      assert.strictEqual(unknown.code, "resource_missing")
    }))

  it.effect("lists the attempts of a PaymentIntent, and takes an update of its metadata", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      const intent = yield* call(() =>
        stripe.paymentIntents.create({ amount: 500, currency: "usd", customer: "cus_1", allowed_payment_method_types: ["card"] })
      )
      yield* refusal(() => stripe.paymentIntents.confirm(intent.id, { payment_method: "pm_card_chargeDeclined", off_session: true }))
      yield* call(() => stripe.paymentIntents.confirm(intent.id, { payment_method: "pm_card_visa", off_session: true }))
      yield* call(() => stripe.charges.create({ amount: 500, currency: "usd", customer: "cus_1" }))
      const attempts = yield* call(() => stripe.charges.list({ payment_intent: intent.id }))
      assert.deepStrictEqual(attempts.data.map(({ status }) => status), ["succeeded", "failed"])
      const updated = yield* call(() => stripe.charges.update(attempts.data[0]!.id, { metadata: { note: "x" }, description: "d" }))
      assert.deepInclude(updated, { description: "d", metadata: { note: "x" } })
      const shown = yield* call(() => stripe.charges.retrieve(updated.id, { expand: ["payment_intent", "customer", "refunds"] }))
      assert.strictEqual((shown.payment_intent as { id: string }).id, intent.id)
      assert.deepStrictEqual(shown.refunds?.data, [])
    }))

  it.effect("meet the faults: a reset after the charge and a 500 that charges later", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const body = "amount=100&currency=usd&customer=cus_1"
      yield* sim.faults.add({ match: { path: "/v1/charges" }, action: { kind: "reset", at: "after" } })
      assert.strictEqual((yield* Effect.flip(raw(sim, "/v1/charges", { body, key: "a" })))._tag, "Broken")
      assert.strictEqual((yield* raw(sim, "/v1/charges", { body, key: "a" })).headers["idempotent-replayed"], "true")
      yield* sim.faults.add({
        match: { path: "/v1/charges" },
        action: { kind: "serverError", effect: "later", stored: true, laterMs: 1000 }
      })
      assert.strictEqual((yield* raw(sim, "/v1/charges", { body, key: "b" })).status, 500)
      assert.strictEqual(yield* sim.payments("cus_1", ""), 1)
      yield* sim.advanceClock("2 seconds")
      assert.strictEqual(yield* sim.payments("cus_1", ""), 2)
      assert.strictEqual((yield* raw(sim, "/v1/charges", { body, key: "b" })).status, 500)
      assert.strictEqual(yield* sim.payments("cus_1", ""), 2)
    }))
})
