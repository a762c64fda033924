/** Whether an object at the processor is the one that the row describes. A difference stops everything for this charge. */
import type { ClaimedCharge, GatewayPayment } from "@purser/core"

/** What differs, in words, or `undefined` when all is as it should be. */
export const mismatchOf = (charge: ClaimedCharge, payment: GatewayPayment): string | undefined => {
  const { request } = charge
  if (
    payment.status !== "draft" && request.amountMinor === payment.amountMinor && request.currency === payment.currency
    && request.stripeCustomerId === payment.stripeCustomerId && charge.lease.chargeKey === payment.chargeKey
    && (payment.status !== "succeeded" || request.amountMinor === payment.amountReceivedMinor)
  ) return undefined
  const differences = [
    // The parts of a draft are still being added.
    ...(payment.status === "draft" ? [] : [["amount", request.amountMinor, payment.amountMinor] as const]),
    ["currency", request.currency, payment.currency],
    ["customer", request.stripeCustomerId, payment.stripeCustomerId],
    ["charge key", charge.lease.chargeKey, payment.chargeKey],
    ...(payment.status === "succeeded" ? [["amount received", request.amountMinor, payment.amountReceivedMinor] as const] : [])
  ] as const
  const found = differences.filter(([, ours, theirs]) => ours !== theirs)
  return found.length === 0
    ? undefined
    : `${payment.id} differs from the row: ${found.map(([name, ours, theirs]) => `${name} is ${theirs}, not ${ours}`).join("; ")}`
}
