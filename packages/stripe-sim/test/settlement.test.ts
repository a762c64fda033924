import { StripeSim } from "@purser/stripe-sim"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { call, raw, refusal, sdk, type Sim } from "./support.ts"

const debit = (sim: Sim, paymentMethod: string) =>
  call(() =>
    sdk(sim).paymentIntents.create({
      amount: 2000,
      currency: "usd",
      payment_method: paymentMethod,
      allowed_payment_method_types: ["us_bank_account", "card"],
      confirm: true,
      off_session: true,
      metadata: { customer_id: "acme", billing_period: "2026-07" }
    })
  )

const eventTypes = (sim: Sim) =>
  Effect.map(call(() => sdk(sim).events.list({ limit: 100 })), ({ data }) => data.map(({ type }) => type).toReversed())

describe("payments that end later", () => {
  it.effect("a bank debit is processing and succeeds after some days on the clock", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const intent = yield* debit(sim, "pm_usBankAccount_success")
      assert.strictEqual(intent.status, "processing")
      assert.strictEqual((yield* refusal(() => sdk(sim).paymentIntents.cancel(intent.id))).code, "payment_intent_unexpected_state")
      yield* sim.advanceClock("3 days")
      assert.strictEqual((yield* call(() => sdk(sim).paymentIntents.retrieve(intent.id))).status, "processing")
      assert.strictEqual(yield* sim.payments("acme", "2026-07"), 0)
      yield* sim.advanceClock("1 day")
      assert.strictEqual((yield* call(() => sdk(sim).paymentIntents.retrieve(intent.id))).status, "succeeded")
      assert.strictEqual(yield* sim.payments("acme", "2026-07"), 1)
      assert.deepStrictEqual(yield* eventTypes(sim), [
        "payment_intent.created",
        "charge.pending",
        "payment_intent.processing",
        "charge.succeeded",
        "payment_intent.succeeded"
      ])
    }))

  it.effect("or fails then, and can be tried again with another method", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make({ bankSettles: "1 hour" })
      const intent = yield* debit(sim, "pm_usBankAccount_insufficientFunds")
      yield* sim.advanceClock("2 hours")
      const failed = yield* call(() => sdk(sim).paymentIntents.retrieve(intent.id))
      assert.strictEqual(failed.status, "requires_payment_method")
      assert.strictEqual(failed.last_payment_error?.decline_code, "insufficient_funds")
      yield* call(() => sdk(sim).paymentIntents.confirm(intent.id, { payment_method: "pm_card_visa", off_session: true }))
      // The old debit has ended; its day comes and changes nothing.
      yield* sim.advanceClock("10 days")
      assert.strictEqual(yield* sim.payments("acme", "2026-07"), 1)
    }))

  it.effect("what was ended by order does not end again by the clock", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const intent = yield* debit(sim, "pm_usBankAccount_success")
      assert.isTrue(yield* sim.settle(intent.id, "failed"))
      const again = yield* call(() => sdk(sim).paymentIntents.confirm(intent.id, { payment_method: "pm_usBankAccount_processing" }))
      assert.strictEqual(again.status, "processing")
      yield* sim.advanceClock("9 days")
      assert.strictEqual((yield* call(() => sdk(sim).paymentIntents.retrieve(intent.id))).status, "processing")
      assert.isTrue(yield* sim.settle(intent.id))
      assert.strictEqual(yield* sim.payments("acme", "2026-07"), 1)
    }))

  it.effect("the one-call API has pending charges too", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const charge = (source: string) => call(() => sdk(sim).charges.create({ amount: 500, currency: "usd", source }))
      const good = yield* charge("pm_usBankAccount_success")
      const bad = yield* charge("pm_usBankAccount_accountClosed")
      assert.deepStrictEqual([good.status, bad.status], ["pending", "pending"])
      yield* sim.advanceClock("5 days")
      assert.strictEqual((yield* call(() => sdk(sim).charges.retrieve(good.id))).status, "succeeded")
      assert.deepInclude(yield* call(() => sdk(sim).charges.retrieve(bad.id)), { status: "failed", failure_code: "card_declined", paid: false })
      const ordered = yield* charge("pm_usBankAccount_processing")
      assert.isTrue(yield* sim.settle(ordered.id, "failed"))
      assert.strictEqual((yield* call(() => sdk(sim).charges.retrieve(ordered.id))).status, "failed")
      assert.isFalse(yield* sim.settle(ordered.id, "succeeded"))
    }))

  it.effect("a customer who must authenticate does so, or does not", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const make = () =>
        call(() =>
          sdk(sim).paymentIntents.create({
            amount: 2000,
            currency: "usd",
            payment_method: "pm_card_threeDSecure2Required",
            allowed_payment_method_types: ["card"],
            confirm: true,
            metadata: { customer_id: "acme", billing_period: "2026-07" }
          })
        )
      const [does, doesNot, gone] = [yield* make(), yield* make(), yield* make()]
      assert.strictEqual(does.status, "requires_action")
      assert.isNotNull(does.next_action)
      assert.strictEqual((yield* raw(sim, `/_sim/settle/${does.id}`, { body: "{}" })).json.status, "succeeded")
      assert.isTrue(yield* sim.settle(doesNot.id, "failed"))
      assert.strictEqual((yield* call(() => sdk(sim).paymentIntents.retrieve(doesNot.id))).status, "requires_payment_method")
      assert.strictEqual((yield* call(() => sdk(sim).paymentIntents.cancel(gone.id, { cancellation_reason: "abandoned" }))).status, "canceled")
      assert.isFalse(yield* sim.settle(gone.id))
      assert.strictEqual(yield* sim.payments("acme", "2026-07"), 1)
    }))

  it.effect("a refund that succeeded can be made to fail by order", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const charge = yield* call(() => sdk(sim).charges.create({ amount: 500, currency: "usd", source: "tok_visa" }))
      const refund = yield* call(() => sdk(sim).refunds.create({ charge: charge.id }))
      assert.isTrue(yield* sim.settle(refund.id, "failed"))
      assert.strictEqual((yield* call(() => sdk(sim).refunds.retrieve(refund.id))).status, "failed")
      const types = yield* eventTypes(sim)
      assert.includeMembers(types, ["refund.failed", "charge.refund.updated"])
    }))

  it.effect("the account and its balance are there", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const charge = yield* call(() => sdk(sim).charges.create({ amount: 500, currency: "usd", source: "tok_visa" }))
      yield* call(() => sdk(sim).refunds.create({ charge: charge.id, amount: 200 }))
      assert.strictEqual((yield* call(() => sdk(sim).accounts.retrieveCurrent())).id, sim.accountId)
      assert.deepStrictEqual((yield* call(() => sdk(sim).balance.retrieve())).available.map(({ amount }) => amount), [300])
    }))
})
