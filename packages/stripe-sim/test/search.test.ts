import { StripeSim } from "@purser/stripe-sim"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { call, refusal, sdk, type Sim } from "./support.ts"

const intentFor = (sim: Sim, period: string, amount = 1000) =>
  call(() =>
    sdk(sim).paymentIntents.create({
      amount,
      currency: "usd",
      customer: "cus_1",
      payment_method: "pm_card_visa",
      allowed_payment_method_types: ["card"],
      metadata: { billing_period: period, "odd key": "a \"quoted\" value" }
    })
  )

const search = (sim: Sim, query: string) =>
  Effect.map(call(() => sdk(sim).paymentIntents.search({ query })), ({ data }) => data.map(({ id }) => id))

describe("search", () => {
  it.effect("does not see what was made or changed in the last minute; the list does", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      const query = "metadata['billing_period']:'2026-07' AND status:'succeeded'"
      const { id } = yield* intentFor(sim, "2026-07")
      assert.deepStrictEqual(yield* search(sim, "metadata['billing_period']:'2026-07'"), [])
      assert.strictEqual((yield* call(() => stripe.paymentIntents.list({ customer: "cus_1" }))).data.length, 1)
      yield* sim.advanceClock("61 seconds")
      yield* call(() => stripe.paymentIntents.confirm(id, { off_session: true }))
      assert.deepStrictEqual(yield* search(sim, "metadata['billing_period']:'2026-07'"), [id])
      const [stale] = (yield* call(() => stripe.paymentIntents.search({ query: "customer:'cus_1'" }))).data
      assert.strictEqual(stale?.status, "requires_confirmation")
      assert.deepStrictEqual(yield* search(sim, query), [])
      yield* sim.advanceClock("61 seconds")
      assert.deepStrictEqual(yield* search(sim, query), [id])
    }))

  it.effect("understands the query language", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make({ searchDelay: 0 })
      const a = (yield* intentFor(sim, "2026-07", 1000)).id
      const b = (yield* intentFor(sim, "2026-08", 2000)).id
      assert.deepStrictEqual(yield* search(sim, "amount>1000"), [b])
      assert.deepStrictEqual(yield* search(sim, "amount>=1000 amount<2000"), [a])
      assert.deepStrictEqual(yield* search(sim, "amount:2000"), [b])
      assert.deepStrictEqual(yield* search(sim, "metadata[\"billing_period\"]~\"2026\" AND -metadata[\"billing_period\"]:\"2026-07\""), [b])
      assert.deepStrictEqual(yield* search(sim, "metadata['odd key']:'a \"quoted\" value'"), [b, a])
      assert.deepStrictEqual(yield* search(sim, "metadata['billing_period']:'2026-07' OR amount:2000"), [b, a])
      assert.deepStrictEqual(yield* search(sim, "metadata['none']:null AND currency:'USD'"), [b, a])
      for (const query of ["status:'a' AND amount>1 OR amount>2", "nothing:'x'", "amount", "(amount>1)", ""]) {
        assert.strictEqual((yield* refusal(() => sdk(sim).paymentIntents.search({ query }))).param, "query")
      }
    }))

  it.effect("pages, and searches charges and invoices too", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make({ searchDelay: 0 })
      const stripe = sdk(sim)
      const made: Array<string> = []
      for (let n = 0; n < 5; n++) made.unshift((yield* intentFor(sim, "2026-07")).id)
      const all = yield* call(() => stripe.paymentIntents.search({ query: "currency:'usd'", limit: 2 }).autoPagingToArray({ limit: 50 }))
      assert.deepStrictEqual(all.map(({ id }) => id), made)
      const charge = yield* call(() => stripe.charges.create({ amount: 100, currency: "usd", customer: "cus_1", metadata: { k: "v" } }))
      yield* call(() => stripe.refunds.create({ charge: charge.id }))
      const found = yield* call(() => stripe.charges.search({ query: "metadata['k']:'v' AND refunded:'true'" }))
      assert.deepStrictEqual(found.data.map(({ id }) => id), [charge.id])
      const invoice = yield* call(() => stripe.invoices.create({ customer: "cus_1", currency: "usd", metadata: { k: "v" } }))
      const drafts = yield* call(() => stripe.invoices.search({ query: "metadata['k']:'v' AND status:'draft'" }))
      assert.deepStrictEqual(drafts.data.map(({ id }) => id), [invoice.id])
    }))
})
