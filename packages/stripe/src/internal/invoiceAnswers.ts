/** An invoice and its lines, as far as they decide about money. */
import type { GatewayPayment } from "@purser/core"
import { Schema } from "effect"
import { idOf, Nullable, type PaymentIntent, Reference } from "./answers.ts"

const Metadata = Nullable(Schema.Record(Schema.String, Schema.String))

/** An invoice; `payments` is there where it was expanded. */
export const Invoice = Schema.Struct({
  object: Schema.Literal("invoice"),
  id: Schema.NonEmptyString,
  status: Schema.Literals(["draft", "open", "paid", "void", "uncollectible"]),
  total: Schema.Int,
  amount_due: Schema.Int,
  amount_paid: Schema.Int,
  starting_balance: Nullable(Schema.Int),
  currency: Schema.NonEmptyString,
  customer: Nullable(Reference),
  metadata: Metadata,
  payments: Nullable(Schema.Struct({
    data: Schema.Array(Schema.Struct({ payment: Nullable(Schema.Struct({ payment_intent: Nullable(Reference) })) }))
  }))
})
export type Invoice = typeof Invoice.Type

/** A line as it was added. */
export const Item = Schema.Struct({ object: Schema.Literal("invoiceitem"), id: Schema.NonEmptyString })

/** A page of an invoice's lines. */
export const Lines = Schema.Struct({
  object: Schema.Literal("list"),
  has_more: Schema.Boolean,
  data: Schema.Array(Schema.Struct({ id: Schema.NonEmptyString, amount: Schema.Int, metadata: Metadata }))
})

/** The PaymentIntent that collects the invoice, once it is finalized and something is due. */
export const intentIdOf = (invoice: Invoice): string | null => idOf(invoice.payments?.data[0]?.payment?.payment_intent)

const statusOf = (invoice: Invoice, intent: PaymentIntent | undefined): GatewayPayment["status"] => {
  switch (invoice.status) {
    case "draft":
      return "draft"
    case "paid":
      return "succeeded"
    case "void":
    case "uncollectible":
      return "canceled"
    case "open":
      switch (intent?.status) {
        case "processing":
        // Paid, and about to be noted on the invoice.
        case "succeeded":
          return "processing"
        case "requires_action":
          return "requires_action"
        case "requires_payment_method":
          return intent.last_payment_error === null || intent.last_payment_error === undefined ? "unconfirmed" : "declined"
        default:
          return "unconfirmed"
      }
  }
}

/**
 * What is collected, which may differ from the total: a balance of the customer pays a part, or is added. Stripe takes it into account
 * when the invoice is finalized; a draft shows it as the balance that it starts from, so that it is seen before it is used up.
 */
const dueOf = ({ amount_due, starting_balance, status, total }: Invoice): number =>
  status === "draft" && amount_due === total ? Math.max(0, total + (starting_balance ?? 0)) : amount_due

/** An invoice in the words of the contract. Its amount is what is due, so that a difference from the charge is seen. */
export const toPayment = (invoice: Invoice, intent: PaymentIntent | undefined, clean: (text: string) => string): GatewayPayment => {
  const generation = invoice.metadata?.["generation"]
  const error = intent?.last_payment_error
  return {
    id: invoice.id,
    status: statusOf(invoice, intent),
    amountMinor: dueOf(invoice),
    amountReceivedMinor: invoice.amount_paid,
    currency: invoice.currency,
    stripeCustomerId: idOf(invoice.customer),
    chargeKey: invoice.metadata?.["charge_key"] ?? null,
    generation: generation !== undefined && /^\d{1,9}$/.test(generation) ? Number(generation) : null,
    chargeId: idOf(intent?.latest_charge) ?? (invoice.status === "paid" ? intentIdOf(invoice) : null),
    decline: error === null || error === undefined ? null : {
      code: error.code ?? error.type ?? "unknown",
      declineCode: error.decline_code ?? null,
      detail: clean(error.message ?? ""),
      adviceCode: error.advice_code ?? null,
      chargeId: error.charge ?? idOf(intent?.latest_charge)
    }
  }
}
