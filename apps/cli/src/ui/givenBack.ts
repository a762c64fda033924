/** What went back of a charge's own payment, by the book of refunds and by others. Amounts in minor units. */
import { type ChargeRecord, type Movement, type RefundRecord, refundedElsewhere, refundHoldsMoney, refundLeftMinor } from "@purser/core"

/** The figures of one payment. `refundedMinor` and `elsewhereMinor` bind what is on its way too. */
export interface GivenBack {
  readonly receivedMinor: number
  readonly refundedMinor: number
  readonly elsewhereMinor: number
  readonly leftMinor: number
}

/** Sums both kinds; `payment` names another payment than the row's own. */
export const givenBack = (
  record: ChargeRecord,
  refunds: ReadonlyArray<RefundRecord>,
  movements: ReadonlyArray<Movement>,
  payment?: { readonly paymentIntentId: string; readonly chargeId: string | null; readonly receivedMinor: number }
): GivenBack => {
  const paid = record.outcome?._tag === "Succeeded" ? record.outcome : undefined
  const of = payment ?? { paymentIntentId: paid?.paymentIntentId ?? null, chargeId: paid?.chargeId ?? null, receivedMinor: paid?.amountReceivedMinor ?? 0 }
  const ours = new Set(refunds.flatMap(({ processorRefundId }) => processorRefundId ?? []))
  const { receivedMinor } = of
  const elsewhereMinor = refundedElsewhere(movements, of, ours).heldMinor
  const held = refunds.filter(({ paymentIntentId, state }) => paymentIntentId === of.paymentIntentId && refundHoldsMoney(state))
  const sum = (rows: ReadonlyArray<RefundRecord>) => rows.reduce((total, { amountMinor }) => total + amountMinor, 0)
  return {
    receivedMinor,
    // That others had given it back is no money of ours.
    refundedMinor: sum(held.filter(({ state }) => state !== "already_refunded")),
    elsewhereMinor,
    leftMinor: refundLeftMinor({ receivedMinor, heldMinor: sum(held), elsewhereMinor })
  }
}
