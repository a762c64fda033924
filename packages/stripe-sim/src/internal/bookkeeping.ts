/**
 * The books, written from an account's objects whenever someone asks.
 *
 * Defines whose payment a payment is: the metadata that the charger wrote, on the PaymentIntent, the charge, or the invoice and its lines. Refuses
 * to keep a running total, which could be wrong where the objects are right.
 */
import { type BookEntry, defaultNamespace } from "../Books.ts"
import type { Account } from "./Account.ts"
import { takesMoney } from "./disputes.ts"
import { dueOf, itemsOf, totalOf } from "./invoiceState.ts"
import type { ChargeRecord, InvoiceRecord, MetadataRecord } from "./records.ts"

type OpenEntry = { -readonly [K in keyof BookEntry]: BookEntry[K] }

/** Whose payment, in which currency. */
interface Identity {
  readonly metadata: MetadataRecord
  readonly customer: string | null
  readonly currency: string
}

/** A part of a payment and whose it is. */
interface Share {
  readonly entry: OpenEntry
  readonly amountMinor: number
}

/** What went back of a charge, taken from the shares of its payment in their order. */
const takeBack = (account: Account, charge: ChargeRecord | undefined, shares: ReadonlyArray<Share>): void => {
  if (charge === undefined || charge.refundedMinor === 0 && charge.dispute === null) return
  const left = shares.map(({ amountMinor }) => amountMinor)
  const spread = (amountMinor: number, note: (entry: OpenEntry, partMinor: number) => void): void => {
    let restMinor = amountMinor
    shares.forEach(({ entry }, at) => {
      const partMinor = Math.min(restMinor, left[at] ?? 0)
      if (partMinor <= 0) return
      left[at] = (left[at] ?? 0) - partMinor
      restMinor -= partMinor
      note(entry, partMinor)
    })
  }
  const dispute = account.disputes.get(charge.dispute ?? "")
  for (const refund of Array.from(account.refunds.newestFirst(charge.id)).toReversed()) {
    if (refund.status !== "succeeded" && refund.status !== "pending") continue
    spread(refund.amountMinor, (entry, partMinor) => {
      entry.refunds = (entry.refunds ?? 0) + 1
      entry.refundedMinor = (entry.refundedMinor ?? 0) + partMinor
    })
  }
  if (dispute === undefined || !takesMoney(dispute)) return
  spread(dispute.amountMinor, (entry, partMinor) => {
    entry.disputes = (entry.disputes ?? 0) + 1
    entry.disputedMinor = (entry.disputedMinor ?? 0) + partMinor
  })
}

/**
 * Whose an invoice's payment is: each line's own metadata before that of the invoice, so an invoice may settle several
 * identities at once. Credits among the lines lessen the share of their identity; what a balance of the customer pays, or adds, is of the
 * invoice's own.
 */
const sharesOf = (account: Account, invoice: InvoiceRecord, entryOf: (identity: Identity) => OpenEntry): ReadonlyArray<Share> => {
  const sums = new Map<OpenEntry, number>()
  for (const item of itemsOf(account, invoice.id)) {
    const entry = entryOf({ ...invoice, metadata: { ...invoice.metadata, ...item.metadata } })
    sums.set(entry, (sums.get(entry) ?? 0) + item.amountMinor)
  }
  const byBalanceMinor = dueOf(account, invoice) - totalOf(account, invoice)
  if (byBalanceMinor !== 0) sums.set(entryOf(invoice), (sums.get(entryOf(invoice)) ?? 0) + byBalanceMinor)
  return Array.from(sums, ([entry, amountMinor]) => ({ entry, amountMinor }))
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
      ...(account.connectedId === null ? {} : { account: account.connectedId }),
      ...(namespace === defaultNamespace ? {} : { namespace })
    }
    totals.set(key, entry)
    return entry
  }
  const paid = (shares: ReadonlyArray<Share>, charge: ChargeRecord | undefined): void => {
    for (const { amountMinor, entry } of shares) {
      entry.payments++
      entry.amountMinor += amountMinor
    }
    takeBack(account, charge, shares)
  }
  for (const intent of account.intents.values()) {
    const invoice = account.invoices.get(intent.invoice ?? "")
    const shares = invoice === undefined
      ? [{ entry: entryOf(intent), amountMinor: intent.amountReceivedMinor }]
      : sharesOf(account, invoice, entryOf)
    if (intent.status === "succeeded") paid(shares, account.charges.get(intent.latestCharge ?? ""))
  }
  for (const charge of account.charges.values()) {
    if (charge.intent !== null) continue
    const entry = entryOf(charge)
    if (charge.status === "succeeded") paid([{ entry, amountMinor: charge.amountMinor }], charge)
  }
  return [...totals.values()]
}
