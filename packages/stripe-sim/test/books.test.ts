import { StripeSim } from "@purser/stripe-sim"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { call, raw, refusal, sdk, type Sim } from "./support.ts"

const pay = (sim: Sim, metadata: Record<string, string>, amount = 1000, currency = "usd", method = "pm_card_visa") =>
  sdk(sim).paymentIntents.create({
    amount,
    currency,
    customer: "cus_77",
    payment_method: method,
    allowed_payment_method_types: ["card"],
    confirm: true,
    off_session: true,
    metadata
  })

describe("the books", () => {
  it.effect("hold one entry per customer, period, item and currency", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const acme = { customer_id: "acme", billing_period: "2026-07" }
      yield* call(() => pay(sim, acme))
      yield* call(() => pay(sim, acme, 250))
      yield* call(() => pay(sim, { ...acme, item: "seats" }))
      yield* call(() => pay(sim, acme, 5000, "jpy"))
      yield* call(() => pay(sim, { ...acme, billing_period: "2026-08" }))
      yield* call(() => pay(sim, { ...acme, namespace: "zmq-billing" }, 1))
        .pipe(Effect.flip, Effect.tap(({ error }) => Effect.sync(() => assert.strictEqual(error.code, "amount_too_small"))))
      yield* call(() => pay(sim, { ...acme, namespace: "other" }))
      assert.sameDeepMembers([...(yield* sim.books)], [
        { customer: "acme", billingPeriod: "2026-07", item: "", payments: 2, amountMinor: 1250, currency: "usd" },
        { customer: "acme", billingPeriod: "2026-07", item: "seats", payments: 1, amountMinor: 1000, currency: "usd" },
        { customer: "acme", billingPeriod: "2026-07", item: "", payments: 1, amountMinor: 5000, currency: "jpy" },
        { customer: "acme", billingPeriod: "2026-08", item: "", payments: 1, amountMinor: 1000, currency: "usd" },
        {
          customer: "acme",
          billingPeriod: "2026-07",
          item: "",
          payments: 1,
          amountMinor: 1000,
          currency: "usd",
          namespace: "other"
        }
      ])
      assert.strictEqual(yield* sim.payments("acme", "2026-07"), 4)
      assert.strictEqual(yield* sim.payments("acme", "2026-07", "seats"), 1)
    }))

  it.effect("list an identity that was never paid with 0 payments", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      yield* refusal(() => pay(sim, { customer_id: "b", billing_period: "2026-07" }, 900, "eur", "pm_card_chargeDeclined"))
      assert.deepStrictEqual(yield* sim.books, [
        { customer: "b", billingPeriod: "2026-07", item: "", payments: 0, amountMinor: 0, currency: "eur" }
      ])
    }))

  it.effect("fall back to the Stripe customer, and count the one-call API too", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      yield* call(() => pay(sim, {}))
      yield* call(() => sdk(sim).charges.create({ amount: 700, currency: "usd", customer: "cus_77" }))
      yield* call(() =>
        sdk(sim).charges.create({
          amount: 300,
          currency: "usd",
          customer: "cus_77",
          metadata: { customer_id: "acme", billing_period: "2026-07" }
        })
      )
      assert.sameDeepMembers([...(yield* sim.books)], [
        { customer: "cus_77", billingPeriod: "", item: "", payments: 2, amountMinor: 1700, currency: "usd" },
        { customer: "acme", billingPeriod: "2026-07", item: "", payments: 1, amountMinor: 300, currency: "usd" }
      ])
    }))

  it.effect("are the same over HTTP", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      yield* call(() => pay(sim, { customer_id: "a", billing_period: "2026-07", item: "base" }))
      const answer = yield* raw(sim, "/_sim/books")
      assert.strictEqual(answer.status, 200)
      assert.deepStrictEqual(answer.json, yield* sim.books)
    }))
})
