/**
 * What an invoice is at any moment, and how it follows the PaymentIntent that pays it.
 *
 * The only place where an invoice becomes `paid`. Refuses to start a payment: `invoices.ts` does.
 */
import type Stripe from "stripe"
import type { Account } from "./Account.ts"
import type { IntentRecord, InvoiceItemRecord, InvoiceRecord } from "./records.ts"
import * as render from "./renderInvoice.ts"

/** The lines of an invoice in the order in which they were added. */
export const itemsOf = (account: Account, invoiceId: string): ReadonlyArray<InvoiceItemRecord> =>
  Array.from(account.invoiceItems.newestFirst(invoiceId)).sort((one, other) => one.seq - other.seq)

/** The sum of an invoice in minor units; credits make it less than 0. */
export const totalOf = (account: Account, invoice: InvoiceRecord): number =>
  invoice.totalMinor ?? itemsOf(account, invoice.id).reduce((sum, { amountMinor }) => sum + amountMinor, 0)

/** What is collected: the customer's balance counts from when the invoice is finalized, whatever becomes of it later. */
export const dueOf = (account: Account, invoice: InvoiceRecord): number =>
  Math.max(0, totalOf(account, invoice) + (invoice.startingBalanceMinor ?? 0))

/** What an invoice shows beside its record, as it is now. */
export const contextOf = (account: Account, invoice: InvoiceRecord): render.InvoiceContext => ({
  customer: account.customer(invoice.customer),
  items: itemsOf(account, invoice.id),
  totalMinor: totalOf(account, invoice),
  dueMinor: dueOf(account, invoice),
  testClock: account.testClockOf(invoice.customer)
})

/** The payment of an invoice, once it has one. */
export const paymentOf = (account: Account, invoice: InvoiceRecord): Stripe.InvoicePayment | undefined =>
  invoice.intent === null ? undefined : render.payment({ ...invoice, intent: invoice.intent }, dueOf(account, invoice))

/** Keeps a new state of an invoice and tells of it. */
export const become = (
  account: Account,
  invoice: InvoiceRecord,
  ...types: ReadonlyArray<Stripe.Event.Type>
): InvoiceRecord => {
  account.invoices.put(invoice)
  if (types.length === 0) return invoice
  const context = contextOf(account, invoice)
  for (const type of types) account.emit(type, () => render.invoice(invoice, context))
  return invoice
}

/** Ends an open invoice as paid. */
export const pay = (account: Account, invoice: InvoiceRecord, offStripe: boolean): InvoiceRecord => {
  const paid = become(account, {
    ...invoice,
    status: "paid",
    paidMinor: dueOf(account, invoice),
    paidOffStripe: offStripe,
    paidS: account.nowSFor(invoice.customer),
    nextAttemptS: null
  }, "invoice.updated", "invoice.paid", "invoice.payment_succeeded")
  const payment = paymentOf(account, paid)
  if (payment !== undefined && !offStripe) account.emit("invoice_payment.paid", () => payment)
  return paid
}

/** Brings the invoice to where its PaymentIntent has come. */
export const follow = (account: Account, intent: IntentRecord): void => {
  const invoice = account.invoices.get(intent.invoice ?? "")
  if (invoice === undefined || (invoice.status !== "open" && invoice.status !== "uncollectible")) return
  if (intent.status === "succeeded") {
    pay(account, { ...invoice, attempts: invoice.attempts + 1 }, false)
  } else if (intent.status === "requires_payment_method") {
    become(account, { ...invoice, attempts: invoice.attempts + 1 }, "invoice.updated", "invoice.payment_failed")
  } else if (intent.status === "requires_action") {
    become(account, invoice, "invoice.payment_action_required")
  }
}
