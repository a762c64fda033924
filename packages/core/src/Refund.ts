/**
 * What a refund is: its identity, its terms, and what becomes of it.
 *
 * A refund is identified by the charge it gives money back for and an id that the caller gives (`1` unless told, which
 * an ordinal is as good for as any other text). The same id again is the same refund; another id is another refund, be the
 * amounts equal or not. Nothing else goes into its key.
 */
import { Schema } from "effect"
import { hash } from "node:crypto"
import { ChargeKey } from "./ChargeKey.ts"
import { OpaqueId } from "./ChargeRequest.ts"
import { AmountMinor } from "./Money.ts"

/** 32 lower-case hex digits. */
export const RefundKey = Schema.String.pipe(
  Schema.check(Schema.isPattern(/^[0-9a-f]{32}$/, { message: "a refund key is 32 lower-case hex digits" })),
  Schema.brand("@purser/core/RefundKey")
)
export type RefundKey = typeof RefundKey.Type

/** The id of a refund that was given none: the first, and for most charges the only one. */
export const firstRefundId = "1"

/** First 32 hex digits of the SHA-256 of charge key and refund id. The charge key has a fixed length: no two identities share a text. */
export const refundKeyOf = (chargeKey: ChargeKey, refundId: string): RefundKey =>
  hash("sha256", `${chargeKey}:refund:${refundId}`, "hex").slice(0, 32) as RefundKey

/** Why the processor is told that money goes back; null says nothing. */
export const RefundReason = Schema.Literals(["duplicate", "fraudulent", "requested_by_customer"])
export type RefundReason = typeof RefundReason.Type

/** A payment beside the one that the row names, for example the second of an identity that was paid twice. */
export const NamedPayment = Schema.Struct({
  paymentIntentId: Schema.NonEmptyString,
  chargeId: Schema.NullOr(Schema.NonEmptyString),
  receivedMinor: AmountMinor
})
export type NamedPayment = typeof NamedPayment.Type

/** The id of a refund of a payment that is named: one of its own, so that it is never taken for a refund of the row's payment. */
export const namedRefundId = (paymentIntentId: string, refundId: string): string => `${paymentIntentId}/${refundId}`

/** A refund as it is asked for. Without `amountMinor` all that is left of the payment goes back, as it stands at the first request. */
export class RefundRequest extends Schema.Class<RefundRequest>("@purser/core/RefundRequest")({
  chargeKey: ChargeKey,
  refundId: OpaqueId,
  amountMinor: Schema.NullOr(AmountMinor),
  reason: Schema.NullOr(RefundReason),
  /** Who asks, and why, for the record. */
  actor: Schema.String,
  note: Schema.String,
  /** Another payment than the row's, whose metadata were seen to name the charge; `refundId` is then a `namedRefundId`. */
  payment: Schema.optionalKey(NamedPayment),
  /** Asks once more for a refund that the processor refused; a decided one stays as it is. */
  again: Schema.optionalKey(Schema.Boolean)
}) {
  /** The idempotency key of this refund's identity. */
  get refundKey(): RefundKey {
    return refundKeyOf(this.chargeKey, this.refundId)
  }
}

const id = (name: string) => `@purser/core/RefundOutcome/${name}`
const common = {
  refundKey: RefundKey,
  chargeKey: ChargeKey,
  amountMinor: Schema.Int,
  /** True when the refund had been decided before this request: the recorded outcome is given again. */
  alreadySettled: Schema.Boolean
}

/** The money goes back; the processor's object is the evidence. */
export class Refunded extends Schema.TaggedClass<Refunded>(id("Refunded"))("Refunded", {
  ...common,
  processorRefundId: Schema.String
}) {}

/** The processor has taken the refund and carries it out later, or waits for the customer. */
export class RefundPending extends Schema.TaggedClass<RefundPending>(id("RefundPending"))("RefundPending", {
  ...common,
  processorRefundId: Schema.String,
  detail: Schema.String
}) {}

/** The refund was made and came back: the customer has nothing, and the amount may be refunded under another id. */
export class RefundFailed extends Schema.TaggedClass<RefundFailed>(id("RefundFailed"))("RefundFailed", {
  ...common,
  processorRefundId: Schema.String,
  detail: Schema.String
}) {}

/** Nothing is left to give back: others have refunded the whole payment. Counts as done; no money moved by this refund. */
export class AlreadyRefunded extends Schema.TaggedClass<AlreadyRefunded>(id("AlreadyRefunded"))("AlreadyRefunded", {
  ...common,
  detail: Schema.String
}) {}

/** The processor refused; no money moved. It is tried again only by an explicit act. */
export class RefundRefused extends Schema.TaggedClass<RefundRefused>(id("RefundRefused"))("RefundRefused", {
  ...common,
  code: Schema.String,
  detail: Schema.String
}) {}

/** A recorded answer about one refund. */
export const RefundOutcome = Schema.Union([Refunded, RefundPending, RefundFailed, AlreadyRefunded, RefundRefused])
export type RefundOutcome = typeof RefundOutcome.Type

/** The same outcome as the answer to a later request. */
export const asAlreadyRefundSettled = (outcome: RefundOutcome): RefundOutcome => {
  switch (outcome._tag) {
    case "Refunded":
      return new Refunded({ ...outcome, alreadySettled: true })
    case "RefundPending":
      return new RefundPending({ ...outcome, alreadySettled: true })
    case "RefundFailed":
      return new RefundFailed({ ...outcome, alreadySettled: true })
    case "AlreadyRefunded":
      return new AlreadyRefunded({ ...outcome, alreadySettled: true })
    case "RefundRefused":
      return new RefundRefused({ ...outcome, alreadySettled: true })
  }
}
