/**
 * The parameters of the invoice endpoints, checked by `tsc` against the SDK's own parameter types.
 */
import type Stripe from "stripe"
import type { Rule } from "./params.ts"

const shared = {
  account_tax_ids: "unsimulated",
  application_fee_amount: "unsimulated",
  auto_advance: "bool",
  automatic_tax: "unsimulated",
  automatically_finalizes_at: "unsimulated",
  collection_method: ["charge_automatically", "send_invoice"],
  custom_fields: "unsimulated",
  days_until_due: "int",
  default_payment_method: "string",
  default_source: "unsimulated",
  default_tax_rates: "unsimulated",
  description: "clearable",
  discounts: "unsimulated",
  due_date: "int",
  effective_at: "unsimulated",
  expand: "strings",
  footer: "clearable",
  issuer: "unsimulated",
  metadata: "metadata",
  number: "clearable",
  on_behalf_of: "unsimulated",
  payment_settings: "unsimulated",
  rendering: "unsimulated",
  shipping_cost: "unsimulated",
  shipping_details: "unsimulated",
  statement_descriptor: "clearable",
  transfer_data: "unsimulated"
} as const

/** `POST /v1/invoices`. */
export const createRules = {
  ...shared,
  currency: "string",
  customer: "string",
  customer_account: "unsimulated",
  from_invoice: "unsimulated",
  pending_invoice_items_behavior: ["exclude", "include"],
  subscription: "unsimulated"
} as const satisfies Record<keyof Stripe.InvoiceCreateParams, Rule>

/** `POST /v1/invoices/:id`. */
export const updateRules = shared satisfies Record<keyof Stripe.InvoiceUpdateParams, Rule>

/** `GET /v1/invoices`. */
export const listRules = {
  collection_method: ["charge_automatically", "send_invoice"],
  created: "range",
  customer: "string",
  customer_account: "unsimulated",
  due_date: "unsimulated",
  ending_before: "string",
  expand: "unsimulated",
  limit: "int",
  starting_after: "string",
  status: ["draft", "open", "paid", "uncollectible", "void"],
  subscription: "unsimulated"
} as const satisfies Record<keyof Stripe.InvoiceListParams, Rule>

/** `POST /v1/invoices/:id/finalize`. */
export const finalizeRules = { auto_advance: "bool", expand: "strings" } as const satisfies Record<
  keyof Stripe.InvoiceFinalizeInvoiceParams,
  Rule
>

/** `POST /v1/invoices/:id/pay`. */
export const payRules = {
  expand: "strings",
  forgive: "unsimulated",
  mandate: "unsimulated",
  off_session: "bool",
  paid_out_of_band: "bool",
  payment_method: "string",
  source: "unsimulated"
} as const satisfies Record<keyof Stripe.InvoicePayParams, Rule>

/** `POST /v1/invoices/:id/add_lines` and `/remove_lines`. */
export const linesRules = {
  expand: "strings",
  invoice_metadata: "unsimulated",
  lines: "hashes"
} as const satisfies Record<keyof Stripe.InvoiceAddLinesParams | keyof Stripe.InvoiceRemoveLinesParams, Rule>

/** `GET /v1/invoices/:id/lines`. */
export const listLinesRules = {
  ending_before: "string",
  expand: "unsimulated",
  limit: "int",
  starting_after: "string"
} as const satisfies Record<keyof Stripe.InvoiceListLineItemsParams, Rule>

/** `GET /v1/invoice_payments`. */
export const paymentsRules = {
  created: "unsimulated",
  ending_before: "unsimulated",
  expand: "unsimulated",
  invoice: "string",
  limit: "int",
  payment: "hash",
  starting_after: "unsimulated",
  status: ["canceled", "open", "paid"]
} as const satisfies Record<keyof Stripe.InvoicePaymentListParams, Rule>

/** One entry of `lines` in `add_lines`. */
export const lineRules = {
  amount: "int",
  description: "string",
  discountable: "bool",
  discounts: "unsimulated",
  invoice_item: "string",
  metadata: "metadata",
  period: "hash",
  price_data: "hash",
  pricing: "unsimulated",
  quantity: "int",
  quantity_decimal: "unsimulated",
  tax_amounts: "unsimulated",
  tax_rates: "unsimulated"
} as const satisfies Record<keyof Stripe.InvoiceAddLinesParams.Line, Rule>
