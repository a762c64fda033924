/** What speaks for and against two equal charges being one bill that was charged twice. */
import { type AccountCharge, type AccountOrigin, Money } from "@purser/core"

/** `low` suspicions are told and never proposed for a refund. */
export type Confidence = "high" | "medium" | "low"

/** One piece of evidence, and which way it points. */
export interface AuditEvidence {
  readonly points: "for" | "against"
  readonly text: string
}

/** What makes two charges comparable: customer, amount and currency. */
export const sameKey = (charge: AccountCharge): string => `${charge.stripeCustomerId ?? ""}\n${charge.amountMinor}\n${charge.currency}`

/** Names under which programs write what a payment is for. */
const purposes = ["billing_period", "period", "billing_month", "invoice_id", "invoice", "invoice_number", "order_id", "order", "charge_key", "subscription_id", "reference"]

const hours = (ms: number) => ms < 3_600_000 ? `${Math.round(ms / 60_000)} minutes` : `${Math.round(ms / 3_600_000)} hours`

/** The evidence on both sides, and what it comes to. */
export const evidenceOf = (
  first: AccountCharge,
  again: AccountCharge,
  firstOrigin: AccountOrigin | undefined,
  againOrigin: AccountOrigin | undefined
): { readonly confidence: Confidence; readonly evidence: ReadonlyArray<AuditEvidence> } => {
  const evidence: Array<AuditEvidence> = [
    { points: "for", text: `same customer, ${Money.text(again.amountMinor, again.currency)} both times, ${hours(again.createdMs - first.createdMs)} apart` }
  ]
  let isSamePurpose = false
  let isOtherPurpose = false
  for (const name of purposes) {
    const [one, other] = [first.metadata[name], again.metadata[name]]
    if (one === undefined || other === undefined) continue
    if (one === other) {
      isSamePurpose = true
      evidence.push({ points: "for", text: `metadata.${name} is the same` })
    } else {
      isOtherPurpose = true
      evidence.push({ points: "against", text: `metadata.${name} differs` })
    }
  }
  if (first.paymentIntentId !== null && first.paymentIntentId === again.paymentIntentId) {
    isOtherPurpose = true
    evidence.push({ points: "against", text: "both belong to one PaymentIntent, which is paid once" })
  }
  const texts = [first.description, again.description]
  const isSameText = texts[0] !== null && texts[0] === texts[1]
  if (isSameText) evidence.push({ points: "for", text: "the description is the same" })
  else if (texts[0] !== null && texts[1] !== null) {
    evidence.push({ points: "against", text: "the description differs" })
    isOtherPurpose ||= !isSamePurpose
  }
  const keys = [firstOrigin?.idempotencyKey ?? null, againOrigin?.idempotencyKey ?? null]
  if (keys[0] !== null && keys[1] !== null) {
    evidence.push(keys[0] === keys[1]
      ? { points: "for", text: "one idempotency key made both: it was used again after Stripe had forgotten it" }
      : { points: "for", text: "different idempotency keys made them, so that Stripe could not tell that they are one" })
  } else evidence.push({ points: "for", text: "no common idempotency key is known" })
  if (again.amountRefundedMinor > 0) evidence.push({ points: "against", text: `${Money.text(again.amountRefundedMinor, again.currency)} of the later one were refunded already` })
  if (first.amountRefundedMinor > 0) evidence.push({ points: "against", text: `${Money.text(first.amountRefundedMinor, first.currency)} of the earlier one were refunded already` })
  if (again.isDisputed || first.isDisputed) evidence.push({ points: "against", text: "the customer has disputed it" })
  return { confidence: isOtherPurpose ? "low" : isSamePurpose || isSameText ? "high" : "medium", evidence }
}
