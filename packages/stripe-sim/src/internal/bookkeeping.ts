/**
 * The books, written from an account's objects whenever someone asks.
 *
 * Defines whose payment a payment is: the metadata that the charger wrote, on the PaymentIntent or the charge. Refuses
 * to keep a running total, which could be wrong where the objects are right.
 */
import { type BookEntry, defaultNamespace } from "../Books.ts"
import type { Account } from "./Account.ts"
import type { ChargeRecord, MetadataRecord } from "./records.ts"

type OpenEntry = { -readonly [K in keyof BookEntry]: BookEntry[K] }

/** Whose payment, in which currency. */
interface Identity {
  readonly metadata: MetadataRecord
  readonly customer: string | null
  readonly currency: string
}

/** What went back of a charge. */
const takeBack = (account: Account, charge: ChargeRecord | undefined, entry: OpenEntry): void => {
  if (charge === undefined || charge.refundedMinor === 0 && charge.dispute === null) return
  for (const refund of account.refunds.newestFirst(charge.id)) {
    if (refund.status !== "succeeded" && refund.status !== "pending") continue
    entry.refunds = (entry.refunds ?? 0) + 1
    entry.refundedMinor = (entry.refundedMinor ?? 0) + refund.amountMinor
  }
}

/** One entry per identity and currency. */
export const bookEntries = (account: Account): ReadonlyArray<BookEntry> => {
  const totals = new Map<string, OpenEntry>()
  const entryOf = ({ currency, customer: stripeCustomer, metadata }: Identity): OpenEntry => {
    const customer = metadata["customer_id"] ?? stripeCustomer ?? ""
    const billingPeriod = metadata["billing_period"] ?? ""
    const item = metadata["item"] ?? ""
    const namespace = metadata["namespace"] ?? defaultNamespace
    const key = JSON.stringify([namespace, customer, billingPeriod, item, currency])
    const known = totals.get(key)
    if (known !== undefined) return known
    const entry: OpenEntry = {
      customer,
      billingPeriod,
      item,
      payments: 0,
      amountMinor: 0,
      currency,
      ...(namespace === defaultNamespace ? {} : { namespace })
    }
    totals.set(key, entry)
    return entry
  }
  for (const intent of account.intents.values()) {
    const entry = entryOf(intent)
    if (intent.status !== "succeeded") continue
    entry.payments++
    entry.amountMinor += intent.amountReceivedMinor
    takeBack(account, account.charges.get(intent.latestCharge ?? ""), entry)
  }
  for (const charge of account.charges.values()) {
    if (charge.intent !== null) continue
    const entry = entryOf(charge)
    if (charge.status !== "succeeded") continue
    entry.payments++
    entry.amountMinor += charge.amountMinor
    takeBack(account, charge, entry)
  }
  return [...totals.values()]
}
