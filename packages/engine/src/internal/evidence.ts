/** Whether an object at the processor is the one that the row describes. A difference stops everything for this charge. */
import type { ClaimedCharge, GatewayPayment } from "@purser/core"

const differs = (what: string, ours: string | number, theirs: string | number | null) => ours === theirs ? "" : `; ${what} is ${theirs}, not ${ours}`

/** What differs, in words, or `undefined` when all is as it should be. */
export const mismatchOf = ({ lease, request }: ClaimedCharge, payment: GatewayPayment): string | undefined => {
  // The parts of a draft are still being added.
  const found = (payment.status === "draft" ? "" : differs("amount", request.amountMinor, payment.amountMinor))
    + differs("currency", request.currency, payment.currency)
    + differs("customer", request.stripeCustomerId, payment.stripeCustomerId)
    + differs("charge key", lease.chargeKey, payment.chargeKey)
    + (payment.status === "succeeded" ? differs("amount received", request.amountMinor, payment.amountReceivedMinor) : "")
  return found === "" ? undefined : `${payment.id} differs from the row: ${found.slice("; ".length)}`
}
