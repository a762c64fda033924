/**
 * `/v1/payment_intents/search`, `/v1/charges/search`, `/v1/invoices/search`.
 *
 * What was changed in the last minute on the virtual clock is not found, or found as it was: a search is no proof that
 * a payment was not made.
 */
import type { Stripe } from "stripe"
import type { Account } from "./Account.ts"
import { type Answer, invalid, ok } from "./answer.ts"
import type { Kept } from "./Collection.ts"
import { contextOf, totalOf } from "./invoiceState.ts"
import { integer, type Params, required, text } from "./params.ts"
import type { ChargeRecord, IntentRecord, InvoiceRecord } from "./records.ts"
import * as render from "./render.ts"
import * as renderInvoice from "./renderInvoice.ts"
import type { Route } from "./route.ts"
import type { SearchIndex } from "./SearchIndex.ts"
import { type FieldReader, parseQuery } from "./searchQuery.ts"

const rules = { query: "string", expand: "unsimulated", limit: "int", page: "string" } as const

const metadataOf = (metadata: Readonly<Record<string, string>>, field: string): string | undefined =>
  field.startsWith("metadata.") ? metadata[field.slice(9)] : undefined

const answerOf = <A extends Kept>(
  params: Params,
  index: SearchIndex<A>,
  options: {
    readonly url: string
    readonly fields: ReadonlyArray<string>
    readonly read: FieldReader<A>
    readonly show: (item: A) => unknown
  }
): Answer => {
  const given = text(params, "query")
  if (given === undefined) return required("query")
  const limit = integer(params, "limit") ?? 10
  if (limit < 1 || limit > 100) return invalid("This value must be between 1 and 100.", "limit", "parameter_invalid_integer")
  const query = parseQuery(given, options.read, (field) => options.fields.includes(field))
  if ("error" in query) return invalid(query.error, "query")
  const after = text(params, "page")
  const found: Array<A> = []
  let started = after === undefined
  for (const item of index.newestFirst()) {
    if (started && query.matches(item)) found.push(item)
    if (item.id === after) started = true
    if (found.length > limit) break
  }
  const data = found.slice(0, limit)
  const more = found.length > limit
  return ok((): Stripe.ApiSearchResult<unknown> => ({
    object: "search_result",
    data: data.map(options.show),
    has_more: more,
    next_page: more ? data.at(-1)?.id ?? null : null,
    url: options.url
  }))
}

const intentField: FieldReader<IntentRecord> = (intent, field) => {
  switch (field) {
    case "amount":
      return intent.amountMinor
    case "created":
      return intent.createdS
    case "currency":
      return intent.currency
    case "customer":
      return intent.customer
    case "status":
      return intent.status
    default:
      return metadataOf(intent.metadata, field)
  }
}

const chargeField: FieldReader<ChargeRecord> = (charge, field) => {
  switch (field) {
    case "amount":
      return charge.amountMinor
    case "created":
      return charge.createdS
    case "currency":
      return charge.currency
    case "customer":
      return charge.customer
    case "disputed":
      return String(charge.dispute !== null)
    case "refunded":
      return String(charge.refundedMinor === charge.amountMinor)
    case "status":
      return charge.status
    default:
      return metadataOf(charge.metadata, field)
  }
}

const intents = (account: Account, params: Params): Answer =>
  answerOf(params, account.searchableIntents, {
    url: "/v1/payment_intents/search",
    fields: ["amount", "created", "currency", "customer", "status"],
    read: intentField,
    show: (intent) => render.paymentIntent(intent)
  })

const charges = (account: Account, params: Params): Answer =>
  answerOf(params, account.searchableCharges, {
    url: "/v1/charges/search",
    fields: ["amount", "created", "currency", "customer", "disputed", "refunded", "status"],
    read: chargeField,
    show: (charge) => render.charge(charge)
  })

const invoices = (account: Account, params: Params): Answer => {
  const read: FieldReader<InvoiceRecord> = (invoice, field) => {
    switch (field) {
      case "created":
        return invoice.createdS
      case "currency":
        return invoice.currency
      case "customer":
        return invoice.customer
      case "number":
        return invoice.number
      case "status":
        return invoice.status
      case "total":
        return totalOf(account, invoice)
      default:
        return metadataOf(invoice.metadata, field)
    }
  }
  return answerOf(params, account.searchableInvoices, {
    url: "/v1/invoices/search",
    fields: ["created", "currency", "customer", "number", "status", "total"],
    read,
    show: (invoice) => renderInvoice.invoice(invoice, contextOf(account, invoice))
  })
}

/** The endpoints of searches. */
export const routes: ReadonlyArray<Route> = [
  { method: "GET", path: "payment_intents/search", rules, handler: intents },
  { method: "GET", path: "charges/search", rules, handler: charges },
  { method: "GET", path: "invoices/search", rules, handler: invoices }
]
