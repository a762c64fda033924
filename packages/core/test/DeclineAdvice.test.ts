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
