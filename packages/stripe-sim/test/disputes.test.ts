import { netMinor, StripeSim } from "@purser/stripe-sim"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { call, raw, refusal, sdk, type Sim } from "./support.ts"

const pay = (sim: Sim, paymentMethod = "pm_card_visa") =>
  call(() =>
    sdk(sim).paymentIntents.create({
      amount: 2000,
      currency: "usd",
      payment_method: paymentMethod,
      allowed_payment_method_types: ["card"],
      confirm: true,
      off_session: true,
      metadata: { customer_id: "acme", billing_period: "2026-07" }
    })
  )

const disputeTypes = (sim: Sim) =>
  Effect.map(call(() => sdk(sim).events.list({ type: "charge.dispute.*" })), ({ data }) => data.map(({ type }) => type).toReversed())

describe("disputes", () => {
  it.effect("opened by a test card: seen on the charge, in the list, as events and in the books", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      const intent = yield* pay(sim, "pm_card_createDispute")
      const charge = yield* call(() => stripe.charges.retrieve(String(intent.latest_charge)))
      assert.isTrue(charge.disputed)
      const list = yield* call(() => stripe.disputes.list({ payment_intent: intent.id }))
      assert.deepInclude(list.data[0], { amount: 2000, charge: charge.id, status: "needs_response", reason: "fraudulent" })
      assert.deepStrictEqual(yield* disputeTypes(sim), ["charge.dispute.created", "charge.dispute.funds_withdrawn"])
      const [entry] = yield* sim.books
      assert.deepInclude(entry, { payments: 1, amountMinor: 2000, disputes: 1, disputedMinor: 2000 })
      assert.strictEqual(netMinor(entry!), 0)
      assert.strictEqual((yield* refusal(() => stripe.refunds.create({ payment_intent: intent.id }))).code, "charge_disputed")
    }))

  it.effect("opened by order, answered and won: the money is back", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      const intent = yield* pay(sim)
      yield* call(() => stripe.refunds.create({ payment_intent: intent.id, amount: 500 }))
      const id = yield* sim.dispute(intent.id, { reason: "duplicate" })
      assert.isString(id)
      assert.isUndefined(yield* sim.dispute(intent.id))
      assert.deepInclude((yield* sim.books)[0], { refundedMinor: 500, disputedMinor: 1500 })
      const answered = yield* call(() => stripe.disputes.update(id!, { evidence: { uncategorized_text: "seen" }, metadata: { a: "1" } }))
      assert.deepInclude(answered, { status: "under_review", reason: "duplicate", metadata: { a: "1" } })
      assert.strictEqual(answered.evidence.uncategorized_text, "seen")
      assert.isTrue(yield* sim.closeDispute(id!, "won"))
      assert.isFalse(yield* sim.closeDispute(id!, "lost"))
      assert.isUndefined((yield* sim.books)[0]?.disputes)
      assert.deepStrictEqual(yield* disputeTypes(sim), [
        "charge.dispute.created",
        "charge.dispute.funds_withdrawn",
        "charge.dispute.updated",
        "charge.dispute.closed",
        "charge.dispute.funds_reinstated"
      ])
      assert.strictEqual((yield* call(() => stripe.refunds.create({ payment_intent: intent.id }))).amount, 1500)
    }))

  it.effect("given up through the API is lost; an inquiry takes nothing", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      const charge = yield* call(() => stripe.charges.create({ amount: 700, currency: "usd", source: "tok_createDispute" }))
      const [dispute] = (yield* call(() => stripe.disputes.list({ charge: charge.id }))).data
      assert.strictEqual((yield* call(() => stripe.disputes.close(dispute!.id))).status, "lost")
      assert.strictEqual((yield* refusal(() => stripe.disputes.close(dispute!.id))).statusCode, 400)
      assert.deepInclude((yield* sim.books)[0], { disputedMinor: 700 })
      const inquiry = yield* pay(sim, "pm_card_createDisputeInquiry")
      const [asked] = (yield* call(() => stripe.disputes.list({ payment_intent: inquiry.id }))).data
      assert.deepInclude(asked, { status: "warning_needs_response", is_charge_refundable: true })
      assert.isUndefined((yield* sim.books).find(({ customer }) => customer === "acme")?.disputes)
      yield* call(() => stripe.refunds.create({ payment_intent: inquiry.id }))
      yield* sim.closeDispute(asked!.id, "lost")
      assert.strictEqual((yield* call(() => stripe.disputes.retrieve(asked!.id))).status, "warning_closed")
    }))

  it.effect("over the admin interface", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const intent = yield* pay(sim)
      const post = (path: string, value: unknown) => raw(sim, `/_sim/${path}`, { body: JSON.stringify(value) })
      const opened = yield* post(`dispute/${intent.id}`, { reason: "general" })
      assert.deepInclude(opened.json, { object: "dispute", reason: "general" })
      assert.strictEqual((yield* post(`dispute/${intent.id}`, {})).status, 404)
      assert.strictEqual((yield* post(`close_dispute/${opened.json.id}`, { outcome: "lost" })).json.status, "lost")
      assert.strictEqual((yield* post(`close_dispute/${opened.json.id}`, { outcome: "lost" })).status, 404)
    }))
})
