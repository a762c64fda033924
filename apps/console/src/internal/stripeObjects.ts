/** The objects at the processor that have to do with a charge, each once, with what it has to do with it. */
import type { ChargeEvent, ChargeRecord, Movement, RefundRecord } from "@purser/core"
import type { Story } from "../api/Shapes.ts"

type Listed = Story["objects"][number]

const kinds: ReadonlyArray<readonly [prefix: string, kind: string]> = [
  ["pi_", "PaymentIntent"], ["ch_", "Charge"], ["py_", "Charge"], ["in_", "Invoice"], ["re_", "Refund"], ["pyr_", "Refund"], ["du_", "Dispute"], ["dp_", "Dispute"],
  ["pm_", "Payment method"], ["cus_", "Customer"]
]
const kindOf = (id: string) => kinds.find(([prefix]) => id.startsWith(prefix))?.[1] ?? "Object"

/** How Stripe calls what the ledger has recorded of an object that can be paid; what it has not recorded is in no row. */
const statuses: Readonly<Record<string, Readonly<Partial<Record<ChargeRecord["state"], string>>>>> = {
  PaymentIntent: { succeeded: "succeeded", declined: "requires_payment_method", requires_action: "requires_action", processing: "processing", canceled: "canceled" },
  Invoice: { succeeded: "paid", declined: "open", requires_action: "open", processing: "open", canceled: "void" },
  Charge: { succeeded: "succeeded", declined: "failed", processing: "pending" }
}
const statusOf = (id: string, state: ChargeRecord["state"]) => statuses[kindOf(id)]?.[state] ?? null

/** All of them, the customer first. */
export const objectsOf = (
  record: ChargeRecord,
  events: ReadonlyArray<ChargeEvent>,
  refunds: ReadonlyArray<RefundRecord>,
  movements: ReadonlyArray<Movement>
): ReadonlyArray<Listed> => {
  const objects = new Map<string, Listed>()
  const add = (id: string | null | undefined, role: string, more: Partial<Pick<Listed, "amountMinor" | "status">> = {}) => {
    if (id !== null && id !== undefined && id !== "" && !objects.has(id)) objects.set(id, { id, kind: kindOf(id), role, amountMinor: null, status: null, ...more })
  }
  const { outcome, request } = record
  add(request.stripeCustomerId, "whom it asks")
  add(record.chosenMethod, "chosen by an act")
  add(request.paymentMethod, "asked for by the request")
  if (outcome?._tag === "Succeeded") {
    add(outcome.paymentIntentId, "paid", { amountMinor: outcome.amountReceivedMinor, status: statusOf(outcome.paymentIntentId, "succeeded") })
    add(outcome.chargeId, "the money's movement", { amountMinor: outcome.amountReceivedMinor, status: "succeeded" })
  }
  // Of a quarantined charge nobody knows how its object stands: it differs from the row.
  const attached = record.paymentIntentId === null || record.quarantine !== null ? null : statusOf(record.paymentIntentId, record.state)
  add(record.paymentIntentId, "attached", { amountMinor: request.amountMinor, status: attached })
  // What an attempt was attached to before a new generation began.
  for (const { attempt, detail, to } of events) if (to === "attached" && detail !== null && /^(?:pi|in)_\w+$/.test(detail)) add(detail, `attached in attempt ${attempt}`)
  if (outcome?._tag === "Declined" || outcome?._tag === "RequiresAction") add(outcome.declinedChargeId, "the attempt that was refused", { status: "failed" })
  for (const { amountMinor, processorRefundId, refundId, state } of refunds) add(processorRefundId, `refund ${refundId}`, { amountMinor, status: state })
  for (const { amountMinor, id, kind, status } of movements) add(id, `${kind} made elsewhere`, { amountMinor, status })
  return [...objects.values()]
}
