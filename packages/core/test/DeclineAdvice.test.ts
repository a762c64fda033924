import { assert, describe, it } from "@effect/vitest"
import { declineAdvice, wantsAuthentication } from "../src/DeclineAdvice.ts"

const advice = (declineCode: string | null, code = "card_declined", adviceCode: string | null = null) =>
  declineAdvice({ code, declineCode, adviceCode })

describe("declineAdvice", () => {
  it("goes by the decline code where there is one, else by the error code", () => {
    assert.deepStrictEqual(advice("insufficient_funds"), { kind: "soft", remedy: "wait" })
    assert.deepStrictEqual(advice("card_not_supported"), { kind: "hard", remedy: "new_method" })
    assert.deepStrictEqual(advice(null, "expired_card"), { kind: "hard", remedy: "new_method" })
    assert.deepStrictEqual(advice(null, "processing_error"), { kind: "soft", remedy: "wait" })
    assert.deepStrictEqual(advice(null), { kind: "soft", remedy: "ask_bank" })
  })

  it("takes the issuer's advice over the table", () => {
    assert.strictEqual(advice("generic_decline", "card_declined", "do_not_try_again").kind, "hard")
    assert.strictEqual(advice("insufficient_funds", "card_declined", "confirm_card_data").remedy, "correct_details")
    assert.strictEqual(advice("card_not_supported", "card_declined", "try_again_later").kind, "soft")
    assert.strictEqual(advice("insufficient_funds", "card_declined", "something_new").kind, "soft")
  })

  it("lets no advice lift a ban of the networks", () => {
    for (const code of ["lost_card", "stolen_card", "pickup_card", "fraudulent", "revocation_of_authorization", "stop_payment_order"]) {
      assert.strictEqual(advice(code, "card_declined", "try_again_later").kind, "hard", code)
    }
  })

  it("knows each code of Stripe's list: what time or the bank may mend, and who has to act for the others", () => {
    const all = {
      "soft wait": "approve_with_id card_velocity_exceeded could_not_process insufficient_funds issuer_not_available processing_error reenter_transaction try_again_later withdrawal_count_limit_exceeded",
      "soft ask_bank": "call_issuer card_declined do_not_honor generic_decline no_action_taken",
      "hard authenticate": "authentication_required",
      "hard ask_bank": "do_not_try_again not_permitted security_violation service_not_allowed",
      "hard review": "duplicate_transaction fraudulent highest_risk_level invalid_amount merchant_blacklist testmode_decline",
      "hard correct_details": "incorrect_address incorrect_cvc incorrect_number incorrect_pin incorrect_zip invalid_cvc invalid_expiry_month invalid_expiry_year invalid_number invalid_pin",
      "hard new_method": "card_not_supported currency_not_supported debit_not_authorized expired_card invalid_account lost_card new_account_information_available offline_pin_required"
        + " online_or_offline_pin_required pickup_card pin_try_exceeded restricted_card revocation_of_all_authorizations revocation_of_authorization stolen_card stop_payment_order transaction_not_allowed"
    }
    for (const [expected, codes] of Object.entries(all)) {
      for (const code of codes.split(" ")) {
        const byDecline = advice(code)
        const byError = advice(null, code)
        assert.deepStrictEqual([`${byDecline.kind} ${byDecline.remedy}`, `${byError.kind} ${byError.remedy}`], [expected, expected], code)
      }
    }
    assert.deepStrictEqual(advice("do_not_honor", "card_declined", "do_not_try_again"), { kind: "hard", remedy: "new_method" })
    assert.deepStrictEqual(advice("card_not_supported", "card_declined", "try_again_later"), { kind: "soft", remedy: "wait" })
    for (const code of ["lost_card", "stolen_card", "pickup_card", "restricted_card", "revocation_of_authorization", "revocation_of_all_authorizations", "stop_payment_order", "do_not_try_again", "fraudulent", "merchant_blacklist", "security_violation", "highest_risk_level"]) {
      assert.deepStrictEqual([advice(code, "card_declined", "try_again_later"), advice(null, code, "try_again_later")].map(({ kind }) => kind), ["hard", "hard"], code)
    }
  })

  it("leaves what it does not know to a person", () => {
    assert.deepStrictEqual(advice("brand_new_code"), { kind: "hard", remedy: "review" })
    assert.deepStrictEqual(advice("constructor"), { kind: "hard", remedy: "review" })
    assert.deepStrictEqual(advice(null, "brand_new_error", "toString"), { kind: "hard", remedy: "review" })
  })

  it("tells who has to authenticate from who was refused", () => {
    assert.isTrue(wantsAuthentication({ code: "authentication_required", declineCode: null }))
    assert.isTrue(wantsAuthentication({ code: "card_declined", declineCode: "authentication_required" }))
    assert.isFalse(wantsAuthentication({ code: "card_declined", declineCode: "do_not_honor" }))
  })
})
