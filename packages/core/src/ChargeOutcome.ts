/**
 * What became of a charge: the answers that are settled facts. A charge whose fate is unknown has no outcome yet; the
 * caller gets a typed error with `outcome: "unknown"` for it.
 */
import { Schema } from "effect"
import { LaterText } from "./ChargeError.ts"
import { ChargeKey } from "./ChargeKey.ts"

const common = {
  chargeKey: ChargeKey,
  /** True when the identity had been settled before this delivery: the recorded outcome is given again. */
  alreadySettled: Schema.Boolean
}

/** Paid exactly once. `amountReceivedMinor` is Stripe's figure. */
export class Succeeded extends Schema.TaggedClass<Succeeded>("@purser/core/ChargeOutcome/Succeeded")("Succeeded", {
  ...common,
  paymentIntentId: Schema.String,
  chargeId: Schema.NullOr(Schema.String),
  amountReceivedMinor: Schema.Int
}) {}

// As `checkedRequest` makes requests, with the fields in the order of the class.
const CheckedSucceeded = function(
  this: { -readonly [Key in keyof Succeeded]: Succeeded[Key] },
  chargeKey: ChargeKey,
  alreadySettled: boolean,
  paymentIntentId: string,
  chargeId: string | null,
  amountReceivedMinor: number
) {
  this._tag = "Succeeded"
  this.chargeKey = chargeKey
  this.alreadySettled = alreadySettled
  this.paymentIntentId = paymentIntentId
  this.chargeId = chargeId
  this.amountReceivedMinor = amountReceivedMinor
} as unknown as { new(chargeKey: ChargeKey, alreadySettled: boolean, paymentIntentId: string, chargeId: string | null, amountReceivedMinor: number): Succeeded; prototype: Succeeded }
CheckedSucceeded.prototype = Succeeded.prototype

/** A payment whose values have been checked already, for those who read many. `amountReceivedMinor` is a safe integer. */
export const checkedSucceeded = (
  { alreadySettled, amountReceivedMinor, chargeId, chargeKey, paymentIntentId }: Pick<Succeeded, "chargeKey" | "alreadySettled" | "paymentIntentId" | "chargeId" | "amountReceivedMinor">
): Succeeded => new CheckedSucceeded(chargeKey, alreadySettled, paymentIntentId, chargeId, amountReceivedMinor)

/** A definitive refusal of the payment method by its bank or network; no money moved. */
export class Declined extends Schema.TaggedClass<Declined>("@purser/core/ChargeOutcome/Declined")("Declined", {
  ...common,
  paymentIntentId: Schema.NullOr(Schema.String),
  code: Schema.String,
  declineCode: Schema.NullOr(Schema.String),
  /** What the issuer advises by way of the processor; `declineAdvice` says what follows from it. */
  adviceCode: LaterText,
  /** The processor's failed charge: tells this decline from any other. */
  declinedChargeId: LaterText,
  detail: Schema.String
}) {}

/** Stripe has accepted the payment and settles it later (bank debits). */
export class Processing extends Schema.TaggedClass<Processing>("@purser/core/ChargeOutcome/Processing")("Processing", {
  ...common,
  paymentIntentId: Schema.String
}) {}

/** The customer must authenticate before money can move. */
export class RequiresAction extends Schema.TaggedClass<RequiresAction>("@purser/core/ChargeOutcome/RequiresAction")("RequiresAction", {
  ...common,
  paymentIntentId: Schema.String,
  /** The processor's failed charge, where it made one before it asked for the customer. */
  declinedChargeId: LaterText,
  detail: Schema.String
}) {}

/** Refused before any money could move: by the cap, by validation, by missing permission. */
export class Rejected extends Schema.TaggedClass<Rejected>("@purser/core/ChargeOutcome/Rejected")("Rejected", {
  ...common,
  code: Schema.String,
  detail: Schema.String
}) {}

/** Canceled at Stripe, by evidence. */
export class Canceled extends Schema.TaggedClass<Canceled>("@purser/core/ChargeOutcome/Canceled")("Canceled", {
  ...common,
  paymentIntentId: Schema.NullOr(Schema.String),
  detail: Schema.String
}) {}

/** A settled answer about one charge. */
export const ChargeOutcome = Schema.Union([Succeeded, Declined, Processing, RequiresAction, Rejected, Canceled])
export type ChargeOutcome = typeof ChargeOutcome.Type

/** Whether it is certain that no money moved, so that the room under the cap goes back. */
export const movedNothing = (outcome: ChargeOutcome): boolean =>
  outcome._tag === "Declined" || outcome._tag === "Rejected" || outcome._tag === "Canceled"

/** The same outcome as the answer to a later delivery. */
export const asAlreadySettled = (outcome: ChargeOutcome): ChargeOutcome => {
  switch (outcome._tag) {
    case "Succeeded":
      return new Succeeded({ ...outcome, alreadySettled: true })
    case "Declined":
      return new Declined({ ...outcome, alreadySettled: true })
    case "Processing":
      return new Processing({ ...outcome, alreadySettled: true })
    case "RequiresAction":
      return new RequiresAction({ ...outcome, alreadySettled: true })
    case "Rejected":
      return new Rejected({ ...outcome, alreadySettled: true })
    case "Canceled":
      return new Canceled({ ...outcome, alreadySettled: true })
  }
}
