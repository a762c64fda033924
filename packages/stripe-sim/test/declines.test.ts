import { StripeSim } from "@purser/stripe-sim"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type Stripe from "stripe"
import { call, refusal, sdk, type Sim } from "./support.ts"

const create = (sim: Sim, method: string) =>
  call(() =>
    sdk(sim).paymentIntents.create({
      amount: 1999,
      currency: "usd",
      customer: "cus_1",
      payment_method: method,
      allowed_payment_method_types: ["card"]
    })
  )

interface Row {
  readonly method: string
  readonly code: string
  readonly declineCode: string | undefined
  readonly message: string
}

const rows: ReadonlyArray<Row> = [
  { method: "chargeDeclined", code: "card_declined", declineCode: "generic_decline", message: "Your card was declined." },
  {
    method: "chargeDeclinedInsufficientFunds",
    code: "card_declined",
    declineCode: "insufficient_funds",
    message: "Your card has insufficient funds."
  },
  { method: "chargeDeclinedLostCard", code: "card_declined", declineCode: "lost_card", message: "Your card was declined." },
  {
    method: "chargeDeclinedStolenCard",
    code: "card_declined",
    declineCode: "stolen_card",
    message: "Your card was declined."
  },
  {
    method: "chargeDeclinedExpiredCard",
    code: "expired_card",
    declineCode: undefined,
    message: "Your card has expired."
  },
  {
    method: "chargeDeclinedIncorrectCvc",
    code: "incorrect_cvc",
    declineCode: undefined,
    message: "Your card's security code is incorrect."
  },
  {
    method: "chargeDeclinedProcessingError",
    code: "processing_error",
    declineCode: undefined,
    message: "An error occurred while processing your card. Try again in a little bit."
  },
  {
    method: "chargeDeclinedVelocityLimitExceeded",
    code: "card_declined",
    declineCode: "card_velocity_exceeded",
    message: "Your card was declined for making repeated attempts too frequently or exceeding its amount limit."
  },
  { method: "chargeCustomerFail", code: "card_declined", declineCode: "generic_decline", message: "Your card was declined." },
  {
    method: "authenticationRequired",
    code: "authentication_required",
    declineCode: "authentication_required",
    message: "Your card was declined. This transaction requires authentication."
  },
  {
    method: "threeDSecure2Required",
    code: "authentication_required",
    declineCode: "authentication_required",
    message: "Your card was declined. This transaction requires authentication."
  }
]

describe("test payment methods that decline", () => {
  for (const row of rows) {
    for (const id of [`pm_card_${row.method}`, `pm_card_visa_${row.method}`]) {
      it.effect(`${id} answers 402 ${row.code} off session and leaves the intent unpaid`, () =>
        Effect.gen(function*() {
          const sim = yield* StripeSim.make()
          const intent = yield* create(sim, id)
          const error = yield* refusal(() => sdk(sim).paymentIntents.confirm(intent.id, { off_session: true }))
          assert.strictEqual(error.type, "StripeCardError")
          assert.strictEqual(error.statusCode, 402)
          assert.strictEqual(error.code, row.code)
          assert.strictEqual((error.raw as Stripe.StripeRawError).decline_code, row.declineCode)
          assert.strictEqual(error.message, row.message)
          assert.match(error.charge ?? "", /^ch_/)
          const inBody = error.payment_intent
          assert.strictEqual(inBody?.status, "requires_payment_method")
          assert.strictEqual(inBody?.last_payment_error?.code, row.code)
          assert.strictEqual(inBody?.payment_method, null)
          const now = yield* call(() => sdk(sim).paymentIntents.retrieve(intent.id))
          assert.strictEqual(now.status, "requires_payment_method")
          assert.strictEqual(now.amount_received, 0)
          assert.strictEqual(now.last_payment_error?.message, row.message)
          assert.strictEqual(yield* sim.payments("cus_1", ""), 0)
        }))
    }
  }

  for (const [suffix, advice] of [["AdviceDoNotTryAgain", "do_not_try_again"], ["AdviceConfirmCardData", "confirm_card_data"], ["AdviceTryAgainLater", "try_again_later"], ["", undefined]] as const) {
    it.effect(`the issuer's advice: ${advice ?? "none"}`, () =>
      Effect.gen(function*() {
        const sim = yield* StripeSim.make()
        const intent = yield* create(sim, `pm_card_visa_chargeDeclinedInsufficientFunds${suffix}`)
        const error = yield* refusal(() => sdk(sim).paymentIntents.confirm(intent.id, { off_session: true }))
        assert.deepStrictEqual([error.decline_code, (error.raw as Stripe.StripeRawError).advice_code], ["insufficient_funds", advice])
        const now = yield* call(() => sdk(sim).paymentIntents.retrieve(intent.id))
        assert.strictEqual(now.last_payment_error?.advice_code, advice)
        const charge = yield* call(() => sdk(sim).charges.retrieve(error.charge ?? ""))
        assert.strictEqual(charge.outcome?.advice_code, advice ?? null)
      }))
  }

  it.effect("an advice alone declines nothing: such a test card does not exist", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const error = yield* refusal(() =>
        sdk(sim).paymentIntents.create({ amount: 1999, currency: "usd", customer: "cus_1", payment_method: "pm_card_visaAdviceDoNotTryAgain" }))
      assert.strictEqual(error.code, "resource_missing")
    }))

  it.effect("a new card on the same intent succeeds after a decline", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const intent = yield* create(sim, "pm_card_chargeDeclined")
      yield* refusal(() => sdk(sim).paymentIntents.confirm(intent.id, { off_session: true }))
      const paid = yield* call(() =>
        sdk(sim).paymentIntents.confirm(intent.id, { off_session: true, payment_method: "pm_card_visa" })
      )
      assert.strictEqual(paid.status, "succeeded")
      assert.strictEqual(paid.last_payment_error, null)
      assert.strictEqual(yield* sim.payments("cus_1", ""), 1)
      const attempts = yield* call(() => sdk(sim).charges.list({ payment_intent: intent.id }))
      assert.deepStrictEqual(attempts.data.map((charge) => charge.status), ["succeeded", "failed"])
    }))

  it.effect("a name that Stripe does not have is no payment method", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const { error } = yield* Effect.flip(create(sim, "pm_card_chargeDeclinedByTheWind"))
      assert.strictEqual(error.code, "resource_missing")
    }))
})

describe("authentication", () => {
  it.effect("an on-session confirm waits in requires_action and succeeds once the customer has authenticated", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const intent = yield* create(sim, "pm_card_authenticationRequired")
      const waiting = yield* call(() => sdk(sim).paymentIntents.confirm(intent.id))
      assert.strictEqual(waiting.status, "requires_action")
      assert.strictEqual(waiting.next_action?.type, "use_stripe_sdk")
      assert.strictEqual(yield* sim.payments("cus_1", ""), 0)
      assert.isTrue(yield* sim.settle(intent.id))
      assert.isFalse(yield* sim.settle(intent.id))
      assert.strictEqual((yield* call(() => sdk(sim).paymentIntents.retrieve(intent.id))).status, "succeeded")
      assert.strictEqual(yield* sim.payments("cus_1", ""), 1)
    }))

  it.effect("error_on_requires_action turns waiting into a decline", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const intent = yield* create(sim, "pm_card_authenticationRequired")
      const error = yield* refusal(() =>
        sdk(sim).paymentIntents.confirm(intent.id, { error_on_requires_action: true })
      )
      assert.strictEqual(error.code, "authentication_required")
    }))

  it.effect("a card set up for off-session use asks only on session", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const method = "pm_card_authenticationRequiredSetupForOffSession"
      const off = yield* create(sim, method)
      const on = yield* create(sim, method)
      assert.strictEqual(
        (yield* call(() => sdk(sim).paymentIntents.confirm(off.id, { off_session: true }))).status,
        "succeeded"
      )
      assert.strictEqual((yield* call(() => sdk(sim).paymentIntents.confirm(on.id))).status, "requires_action")
    }))
})

describe("payments that settle later", () => {
  const confirmed = (sim: Sim, method: string, type: "card" | "us_bank_account") =>
    call(() =>
      sdk(sim).paymentIntents.create({
        amount: 1999,
        currency: "usd",
        customer: "cus_1",
        payment_method: method,
        allowed_payment_method_types: [type],
        confirm: true,
        off_session: true
      })
    )

  it.effect("are processing until they are settled, and then succeed once", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      for (const [method, type] of [["pm_sim_processing", "card"], ["pm_usBankAccount_success", "us_bank_account"]] as const) {
        const intent = yield* confirmed(sim, method, type)
        assert.strictEqual(intent.status, "processing")
        assert.strictEqual(intent.amount_received, 0)
        const error = yield* refusal(() => sdk(sim).paymentIntents.confirm(intent.id, { off_session: true }))
        assert.strictEqual(error.code, "payment_intent_unexpected_state")
        assert.isTrue(yield* sim.settle(intent.id))
        assert.isFalse(yield* sim.settle(intent.id))
        assert.strictEqual((yield* call(() => sdk(sim).paymentIntents.retrieve(intent.id))).status, "succeeded")
      }
      assert.strictEqual(yield* sim.payments("cus_1", ""), 2)
    }))

  it.effect("can fail when they settle: by their method, or by order", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const byMethod = yield* confirmed(sim, "pm_usBankAccount_accountClosed", "us_bank_account")
      const byOrder = yield* confirmed(sim, "pm_sim_processing", "card")
      yield* sim.settle(byMethod.id)
      yield* sim.settle(byOrder.id, "failed")
      for (const { id } of [byMethod, byOrder]) {
        const now = yield* call(() => sdk(sim).paymentIntents.retrieve(id))
        assert.strictEqual(now.status, "requires_payment_method")
        assert.isNotNull(now.last_payment_error)
      }
      assert.strictEqual(yield* sim.payments("cus_1", ""), 0)
    }))
})
