/** Whether an object at the processor is the one that the row describes. A difference stops everything for this charge. */
import { type ClaimedCharge, type GatewayPayment, Money } from "@purser/core"

interface Billed {
  readonly currency: string
  readonly amountMinor: number
}

const differs = (what: string, ours: string, theirs: string | null): ReadonlyArray<string> => ours === theirs ? [] : [`${what} is ${theirs}, not ${ours}`]
const differsBy = (what: string, ours: Billed, theirs: Billed): ReadonlyArray<string> =>
  ours.amountMinor === theirs.amountMinor ? [] : [`${what} is ${Money.text(theirs.amountMinor, theirs.currency)}, not ${Money.text(ours.amountMinor, ours.currency)}`]

/** What differs in the terms, each in words; amounts as people write them. */
export const termsApart = (
  ours: Billed & { readonly stripeCustomerId: string },
  theirs: Billed & { readonly stripeCustomerId: string | null; readonly status: string; readonly amountReceivedMinor: number }
): ReadonlyArray<string> => [
  // The parts of a draft are still being added.
  ...(theirs.status === "draft" ? [] : differsBy("amount", ours, theirs)),
  ...differs("currency", ours.currency, theirs.currency),
  ...differs("customer", ours.stripeCustomerId, theirs.stripeCustomerId),
  ...(theirs.status === "succeeded" ? differsBy("amount received", ours, { ...theirs, amountMinor: theirs.amountReceivedMinor }) : [])
]

/** What differs, in words, or `undefined` when all is as it should be. */
export const mismatchOf = ({ lease, request }: ClaimedCharge, payment: GatewayPayment): string | undefined => {
  // Nearly all agree, and each is looked at twice.
  if (
    request.amountMinor === payment.amountMinor && request.currency === payment.currency && request.stripeCustomerId === payment.stripeCustomerId
    && lease.chargeKey === payment.chargeKey && (payment.status !== "succeeded" || payment.amountReceivedMinor === payment.amountMinor)
  ) return undefined
  const found = [...termsApart(request, payment), ...differs("charge key", lease.chargeKey, payment.chargeKey)]
  return found.length === 0 ? undefined : `${payment.id} differs from the row: ${found.join("; ")}`
}
