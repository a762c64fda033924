/**
 * One request to charge: who, for what, how much, and with which Stripe customer and payment method.
 *
 * Ids are opaque text: nothing is trimmed, folded or normalised, and what could be mistaken for another id is refused.
 */
import { Schema } from "effect"
import { BillingPeriod } from "./BillingPeriod.ts"
import { type ChargeKey, chargeKeyOf } from "./ChargeKey.ts"
import { Currency } from "./Currency.ts"
import { idProblem } from "./internal/idProblem.ts"
import { AmountMinor } from "./Money.ts"

export { idProblem }

/** An opaque id of 1 to 255 UTF-8 bytes without outer blanks or control characters. */
export const OpaqueId = Schema.String.pipe(Schema.check(Schema.makeFilter((id: string) => idProblem(id) ?? true)))

/** Which billing of the identity anew; the first billing has none. */
export const Revision = Schema.Int.pipe(Schema.check(Schema.isBetween({ minimum: 1, maximum: 1000 })))

// A key is asked for at every step of a charge; beside the request and not in it, so that two requests stay equal.
const keys = new WeakMap<ChargeRequest, ChargeKey>()

/**
 * A charge request. `item` tells several charges of one customer and period apart; `paymentMethod` is a Stripe id, and
 * without it the customer's default one is used. `revision` names a re-billing that was opened by an
 * explicit act; no request opens one. `senderKey` is the idempotency key that the sender would have used: it
 * is compared and counted, never used. `allowFuture` names a person's decision to bill a period that has not begun.
 */
export class ChargeRequest extends Schema.Class<ChargeRequest>("@purser/core/ChargeRequest")({
  namespace: OpaqueId,
  customerId: OpaqueId,
  billingPeriod: BillingPeriod,
  item: Schema.optionalKey(OpaqueId),
  revision: Schema.optionalKey(Revision),
  amountMinor: AmountMinor,
  currency: Currency,
  stripeCustomerId: OpaqueId,
  paymentMethod: Schema.optionalKey(OpaqueId),
  senderKey: Schema.optionalKey(Schema.String.pipe(Schema.check(Schema.isMaxLength(255)))),
  allowFuture: Schema.optionalKey(Schema.Boolean)
}) {
  /** The idempotency key of this request's identity. */
  get chargeKey(): ChargeKey {
    const known = keys.get(this)
    if (known !== undefined) return known
    const key = chargeKeyOf(this)
    keys.set(this, key)
    return key
  }
}

/** The terms that are frozen at the first claim, and whose change is a conflict. */
export interface ChargeTerms {
  readonly amountMinor: number
  readonly currency: string
  readonly stripeCustomerId: string
  readonly paymentMethod: string | null
}

/** The terms of a request. */
export const chargeTerms = (request: ChargeRequest): ChargeTerms => ({
  amountMinor: request.amountMinor,
  currency: request.currency,
  stripeCustomerId: request.stripeCustomerId,
  paymentMethod: request.paymentMethod ?? null
})
