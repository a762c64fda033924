/**
 * Invoices, their items and lines as Stripe shows them, typed by the SDK.
 *
 * The SDK turns decimals into objects after parsing, so on the wire they are texts: the only places where a shape
 * differs from the SDK's type.
 */
import type Stripe from "stripe"
import type { CustomerRecord, InvoiceItemRecord, InvoiceRecord } from "./records.ts"

/** An invoice item as it travels. */
export type WireItem = Omit<Stripe.InvoiceItem, "quantity_decimal"> & { readonly quantity_decimal: string }
/** A line as it travels. */
export type WireLine = Omit<Stripe.InvoiceLineItem, "quantity_decimal"> & { readonly quantity_decimal: string }
/** An invoice as it travels. */
export type WireInvoice = Omit<Stripe.Invoice, "lines"> & { readonly lines: Stripe.ApiList<WireLine> }

/** An invoice item. */
export const item = (r: InvoiceItemRecord, testClock: string | null): WireItem => ({
  id: r.id,
  object: "invoiceitem",
  amount: r.amountMinor,
  currency: r.currency,
  customer: r.customer,
  customer_account: null,
  date: r.createdS,
  description: r.description,
  discountable: true,
  discounts: [],
  invoice: r.invoice,
  livemode: false,
  metadata: r.metadata,
  net_amount: r.amountMinor,
  parent: null,
  period: { start: r.periodStartS, end: r.periodEndS },
  pricing: null,
  proration: false,
  quantity: r.quantity,
  quantity_decimal: String(r.quantity),
  tax_rates: [],
  test_clock: testClock
})

/** The line that an item is on its invoice. */
export const line = (r: InvoiceItemRecord): WireLine => ({
  id: r.lineId,
  object: "line_item",
  amount: r.amountMinor,
  currency: r.currency,
  description: r.description,
  discount_amounts: [],
  discountable: true,
  discounts: [],
  invoice: r.invoice,
  livemode: false,
  metadata: r.metadata,
  parent: {
    invoice_item_details: { invoice_item: r.id, proration: false, proration_details: null, subscription: null },
    subscription_item_details: null,
    type: "invoice_item_details"
  },
  period: { start: r.periodStartS, end: r.periodEndS },
  pretax_credit_amounts: [],
  pricing: null,
  quantity: r.quantity,
  quantity_decimal: String(r.quantity),
  subscription: null,
  subtotal: r.amountMinor,
  taxes: []
})

/** The payment of an invoice: its PaymentIntent, seen from the invoice. */
export const payment = (r: InvoiceRecord & { readonly intent: string }, dueMinor: number): Stripe.InvoicePayment => ({
  id: r.paymentId,
  object: "invoice_payment",
  amount_paid: r.status === "paid" && !r.paidOffStripe ? r.paidMinor : null,
  amount_requested: dueMinor,
  created: r.finalizedS ?? r.createdS,
  currency: r.currency,
  invoice: r.id,
  is_default: true,
  livemode: false,
  payment: { payment_intent: r.intent, type: "payment_intent" },
  status: r.status === "void" || r.paidOffStripe ? "canceled" : r.status === "paid" ? "paid" : "open",
  status_transitions: { canceled_at: r.voidedS, paid_at: r.paidOffStripe ? null : r.paidS }
})

/** What an invoice shows beside its record. */
export interface InvoiceContext {
  readonly customer: CustomerRecord | undefined
  readonly items: ReadonlyArray<InvoiceItemRecord>
  readonly totalMinor: number
  readonly dueMinor: number
  readonly testClock: string | null
}

const linesShown = 10

/** An invoice; `expanded` adds what the caller asked for. */
export const invoice = (
  r: InvoiceRecord,
  { customer, dueMinor, items, testClock, totalMinor }: InvoiceContext,
  expanded?: Partial<Pick<Stripe.Invoice, "payments" | "customer" | "confirmation_secret">>
): WireInvoice => {
  const paidMinor = r.paidMinor
  return {
    id: r.id,
    object: "invoice",
    account_country: "US",
    account_name: "Simulator",
    account_tax_ids: null,
    amount_due: dueMinor,
    amount_overpaid: 0,
    amount_paid: paidMinor,
    ...(r.paidOffStripe ? { amount_paid_off_stripe: paidMinor } : {}),
    amount_remaining: dueMinor - paidMinor,
    amount_shipping: 0,
    application: null,
    attempt_count: r.attempts,
    attempted: r.attempts > 0,
    auto_advance: r.autoAdvance,
    automatic_tax: { disabled_reason: null, enabled: false, liability: null, provider: null, status: null },
    automatically_finalizes_at: r.status === "draft" ? r.finalizesAtS : null,
    billing_reason: "manual",
    collection_method: r.collection,
    created: r.createdS,
    currency: r.currency,
    custom_fields: null,
    customer: r.customer,
    customer_account: null,
    customer_address: null,
    customer_email: customer?.email ?? null,
    customer_name: customer?.name ?? null,
    customer_phone: customer?.phone ?? null,
    customer_shipping: null,
    customer_tax_exempt: "none",
    customer_tax_ids: [],
    default_payment_method: r.defaultPaymentMethod,
    default_source: null,
    default_tax_rates: [],
    description: r.description,
    discounts: [],
    due_date: r.dueS,
    effective_at: r.finalizedS,
    ending_balance: r.startingBalanceMinor === null ? null : Math.min(0, totalMinor + r.startingBalanceMinor),
    footer: r.footer,
    from_invoice: null,
    hosted_invoice_url: r.finalizedS === null ? null : `https://invoice.stripe.com/i/sim/${r.id}`,
    invoice_pdf: r.finalizedS === null ? null : `https://pay.stripe.com/invoice/sim/${r.id}/pdf`,
    issuer: { type: "self" },
    last_finalization_error: null,
    latest_revision: null,
    lines: {
      object: "list",
      data: items.slice(0, linesShown).map(line),
      has_more: items.length > linesShown,
      url: `/v1/invoices/${r.id}/lines`
    },
    livemode: false,
    metadata: r.metadata,
    next_payment_attempt: r.nextAttemptS,
    number: r.number,
    on_behalf_of: null,
    parent: null,
    payment_settings: { default_mandate: null, payment_method_options: null, payment_method_types: null },
    period_end: r.createdS,
    period_start: r.createdS,
    post_payment_credit_notes_amount: 0,
    pre_payment_credit_notes_amount: 0,
    receipt_number: null,
    rendering: null,
    shipping_cost: null,
    shipping_details: null,
    starting_balance: r.startingBalanceMinor ?? customer?.balanceMinor ?? 0,
    statement_descriptor: r.statementDescriptor,
    status: r.status,
    status_transitions: {
      finalized_at: r.finalizedS,
      marked_uncollectible_at: r.uncollectibleS,
      paid_at: r.paidS,
      voided_at: r.voidedS
    },
    subtotal: totalMinor,
    subtotal_excluding_tax: totalMinor,
    test_clock: testClock,
    total: totalMinor,
    total_discount_amounts: [],
    total_excluding_tax: totalMinor,
    total_pretax_credit_amounts: [],
    total_taxes: [],
    webhooks_delivered_at: r.createdS,
    ...expanded
  }
}
