/**
 * One request to charge: who, for what, how much, and with which Stripe customer and payment method.
 *
 * Ids are opaque text: nothing is trimmed, folded or normalised, and what could be mistaken for another id is refused.
 */
import { Result, Schema } from "effect"
import { BillingPeriod } from "./BillingPeriod.ts"
import { type ChargeKey, chargeKeyOf } from "./ChargeKey.ts"
import { Currency, parseCurrency } from "./Currency.ts"
import { makeBeside } from "./internal/beside.ts"
import { idProblem } from "./internal/idProblem.ts"
import { areUsual, type Unchecked } from "./internal/usualFields.ts"
import { AmountMinor } from "./Money.ts"

export { idProblem }

/** An opaque id of 1 to 255 UTF-8 bytes without outer blanks, control characters or what turns the direction of reading. */
export const OpaqueId = Schema.String.pipe(Schema.check(Schema.makeFilter((id: string) => idProblem(id) ?? true)))

/** Which billing of the identity anew; the first billing has none. */
export const Revision = Schema.Int.pipe(Schema.check(Schema.isBetween({ minimum: 1, maximum: 1000 })))

// A key is asked for at every step of a charge; beside the request and not in it, so that two requests stay equal.
const keys = makeBeside<ChargeRequest, ChargeKey>()

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
    const known = keys.of(this)
    if (known !== undefined) return known
    const key = chargeKeyOf(this)
    keys.put(this, key)
    return key
  }
}

/** The fields of a request, each of which has passed the check of its schema. */
export interface CheckedFields {
  readonly namespace: string
  readonly customerId: string
  readonly billingPeriod: BillingPeriod
  readonly item?: string | undefined
  readonly amountMinor: AmountMinor
  readonly currency: Currency
  readonly stripeCustomerId: string
  readonly paymentMethod?: string | undefined
  readonly senderKey?: string | undefined
  readonly allowFuture?: boolean | undefined
}

// A function that assigns them one by one makes objects that the engine of the language handles faster than what
// `Object.create` gives, and the class would look at each field again.
const CheckedRequest = function(this: { -readonly [Key in keyof ChargeRequest]: ChargeRequest[Key] }, from: CheckedFields) {
  this.namespace = from.namespace
  this.customerId = from.customerId
  this.billingPeriod = from.billingPeriod
  if (from.item !== undefined) this.item = from.item
  this.amountMinor = from.amountMinor
  this.currency = from.currency
  this.stripeCustomerId = from.stripeCustomerId
  if (from.paymentMethod !== undefined) this.paymentMethod = from.paymentMethod
  if (from.senderKey !== undefined) this.senderKey = from.senderKey
  if (from.allowFuture === true) this.allowFuture = true
} as unknown as { new(from: CheckedFields): ChargeRequest; prototype: ChargeRequest }
CheckedRequest.prototype = ChargeRequest.prototype

/** A first billing of fields that were checked one by one, for those who read many. */
export const checkedRequest = (fields: CheckedFields): ChargeRequest => new CheckedRequest(fields)

const decode = Schema.decodeUnknownResult(ChargeRequest)

/** A name that says nothing is refused by the schema, unlike one that is not there. Each field is read once, since reading may run code. */
const readUsual = (input: object): ChargeRequest | undefined => {
  if (Array.isArray(input) || "revision" in input) return undefined
  const { allowFuture, amountMinor, billingPeriod, currency, customerId, item, namespace, paymentMethod, senderKey, stripeCustomerId }: Unchecked = input
  if (item === undefined && "item" in input || paymentMethod === undefined && "paymentMethod" in input) return undefined
  if (senderKey === undefined && "senderKey" in input || allowFuture === undefined && "allowFuture" in input) return undefined
  if (typeof billingPeriod !== "string" || billingPeriod === "" || typeof currency !== "string") return undefined
  const code = parseCurrency(currency)
  if (code === undefined || code !== currency) return undefined
  const fields = {
    namespace,
    customerId,
    billingPeriod: billingPeriod as BillingPeriod,
    item,
    amountMinor,
    currency: code,
    stripeCustomerId,
    paymentMethod,
    senderKey,
    allowFuture
  }
  return areUsual(fields) ? checkedRequest(fields) : undefined
}

/** Reads what nobody has checked as the schema does, with the schema's refusals, and in a fraction of its time where a request is as nearly all are. */
export const readRequest = (input: unknown): Result.Result<ChargeRequest, Schema.SchemaError> => {
  const usual = typeof input === "object" && input !== null ? readUsual(input) : undefined
  return usual === undefined ? decode(input) : Result.succeed(usual)
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
