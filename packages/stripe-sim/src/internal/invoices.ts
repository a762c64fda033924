/**
 * `/v1/invoices`: create, retrieve, update, delete, list.
 *
 * Defines the draft. Refuses subscriptions, taxes and discounts. What follows the draft is `invoiceCollection.ts`.
 */
import type Stripe from "stripe"
import { type Account, pendingOf } from "./Account.ts"
import { type Answer, invalid, missing, ok } from "./answer.ts"
import { checkCurrency, checkCustomer } from "./checks.ts"
import { collectionRoutes, finalize, found, retryLater, shown } from "./invoiceCollection.ts"
import { drop, frozen } from "./invoiceItems.ts"
import * as lines from "./invoiceLines.ts"
import { createRules, listRules, updateRules } from "./invoiceRules.ts"
import { become, contextOf, itemsOf } from "./invoiceState.ts"
import { page } from "./lists.ts"
import { integer, mergeMetadata, type Params, required, text, textOr } from "./params.ts"
import type { InvoiceItemRecord, InvoiceRecord } from "./records.ts"
import * as render from "./renderInvoice.ts"
import type { Route } from "./route.ts"

const draftLastsS = 60 * 60

/** What says when an invoice is due; only invoices that are sent have a due date. */
const dueOf = (params: Params, collection: InvoiceRecord["collection"], stored?: InvoiceRecord) => {
  const daysUntilDue = integer(params, "days_until_due") ?? stored?.daysUntilDue ?? null
  const dueS = integer(params, "due_date") ?? stored?.dueS ?? null
  if (collection === "charge_automatically" && (params["days_until_due"] !== undefined || params["due_date"] !== undefined)) {
    return invalid("You can only set `due_date` or `days_until_due` when `collection_method` is `send_invoice`.", "due_date")
  }
  if (collection === "send_invoice" && daysUntilDue === null && dueS === null) return required("days_until_due")
  return { daysUntilDue, dueS }
}

const collectionOf = (params: Params, otherwise: InvoiceRecord["collection"]): InvoiceRecord["collection"] => {
  const given = text(params, "collection_method")
  return given === undefined ? otherwise : given === "send_invoice" ? "send_invoice" : "charge_automatically"
}

/** A draft that advances by itself is finalized and collected an hour after its creation, unless someone was faster. */
const advanceLater = (account: Account, invoice: InvoiceRecord): void =>
  account.laterFor(invoice.customer, draftLastsS * 1000, () => {
    const now = account.invoices.get(invoice.id)
    if (now === undefined || now.status !== "draft" || !now.autoAdvance) return
    finalize(account, now)
    retryLater(account, invoice.id, 0)
  })

const create = (account: Account, params: Params): Answer => {
  const customer = text(params, "customer")
  if (customer === undefined) return required("customer")
  const refused = checkCustomer(account, customer)
  if (refused !== undefined) return refused
  const pending = text(params, "pending_invoice_items_behavior") === "include"
    ? Array.from(account.invoiceItems.newestFirst(pendingOf(customer)))
    : []
  const currency = (text(params, "currency") ?? pending[0]?.currency ?? "usd").toLowerCase()
  const collection = collectionOf(params, "charge_automatically")
  const due = dueOf(params, collection)
  if (!("dueS" in due)) return due
  const method = text(params, "default_payment_method")
  if (method !== undefined && account.paymentMethod(method) === undefined) {
    return missing("PaymentMethod", method, "default_payment_method", false)
  }
  const unknown = checkCurrency(currency)
  if (unknown !== undefined) return unknown
  const nowS = account.nowSFor(customer)
  const autoAdvance = text(params, "auto_advance") === "true"
  const made: InvoiceRecord = account.invoices.put({
    id: account.nextId("in_1"),
    seq: account.invoices.nextSeq,
    createdS: nowS,
    status: "draft",
    customer,
    currency,
    collection,
    autoAdvance,
    finalizesAtS: autoAdvance ? nowS + draftLastsS : null,
    nextAttemptS: autoAdvance && collection === "charge_automatically" ? nowS + draftLastsS : null,
    attempts: 0,
    ...due,
    number: text(params, "number") ?? null,
    description: textOr(params, "description", null),
    footer: textOr(params, "footer", null),
    statementDescriptor: textOr(params, "statement_descriptor", null),
    defaultPaymentMethod: method ?? null,
    metadata: mergeMetadata({}, params),
    totalMinor: null,
    startingBalanceMinor: null,
    paidMinor: 0,
    paidOffStripe: false,
    paymentId: account.nextId("inpay_1"),
    intent: null,
    finalizedS: null,
    paidS: null,
    voidedS: null,
    uncollectibleS: null
  })
  for (const item of pending) {
    if (item.currency === currency) account.invoiceItems.put<InvoiceItemRecord>({ ...item, invoice: made.id })
  }
  if (autoAdvance) advanceLater(account, made)
  return shown(account, become(account, made, "invoice.created"), params)
}

const retrieve = (account: Account, params: Params, id: string): Answer =>
  found(account, id, (invoice) => shown(account, invoice, params))

const update = (account: Account, params: Params, id: string): Answer =>
  found(account, id, (invoice) => {
    const open = ["auto_advance", "default_payment_method", "description", "expand", "metadata"]
    const fixed = Object.keys(params).some((name) => !open.includes(name)) ? frozen(invoice) : undefined
    if (fixed !== undefined) return fixed
    const collection = collectionOf(params, invoice.collection)
    const due = dueOf(params, collection, invoice)
    if (!("dueS" in due)) return due
    const method = text(params, "default_payment_method")
    if (method !== undefined && account.paymentMethod(method) === undefined) {
      return missing("PaymentMethod", method, "default_payment_method", false)
    }
    const autoAdvance = params["auto_advance"] === undefined ? invoice.autoAdvance : text(params, "auto_advance") === "true"
    const starts = autoAdvance && !invoice.autoAdvance && invoice.status === "draft"
    const changed = become(account, {
      ...invoice,
      collection,
      ...due,
      autoAdvance,
      finalizesAtS: starts ? account.nowSFor(invoice.customer) + draftLastsS : autoAdvance ? invoice.finalizesAtS : null,
      nextAttemptS: autoAdvance ? invoice.nextAttemptS : null,
      number: textOr(params, "number", invoice.number),
      description: textOr(params, "description", invoice.description),
      footer: textOr(params, "footer", invoice.footer),
      statementDescriptor: textOr(params, "statement_descriptor", invoice.statementDescriptor),
      defaultPaymentMethod: method ?? invoice.defaultPaymentMethod,
      metadata: mergeMetadata(invoice.metadata, params)
    }, "invoice.updated")
    if (starts) advanceLater(account, changed)
    return shown(account, changed, params)
  })

const remove = (account: Account, _params: Params, id: string): Answer =>
  found(account, id, (invoice) => {
    if (invoice.status !== "draft") return invalid("You can only delete draft invoices.", "id", "invoice_not_editable")
    const context = contextOf(account, invoice)
    for (const item of itemsOf(account, id)) drop(account, item)
    account.invoices.remove(id)
    account.emit("invoice.deleted", () => render.invoice(invoice, context))
    return ok((): Stripe.DeletedInvoice => ({ id, object: "invoice", deleted: true }))
  })

const list = (account: Account, params: Params): Answer => {
  const status = text(params, "status")
  const collection = text(params, "collection_method")
  return page(account.invoices, params, {
    url: "/v1/invoices",
    what: "invoice",
    show: (invoice) => render.invoice(invoice, contextOf(account, invoice)),
    where: (invoice) =>
      (status === undefined || invoice.status === status) && (collection === undefined || invoice.collection === collection)
  })
}

/** The endpoints of this resource. */
export const routes: ReadonlyArray<Route> = [
  { method: "POST", path: "invoices", rules: createRules, handler: create },
  { method: "GET", path: "invoices", rules: listRules, handler: list },
  { method: "GET", path: "invoices/:id", rules: { expand: "strings" }, handler: retrieve },
  { method: "POST", path: "invoices/:id", rules: updateRules, handler: update },
  { method: "DELETE", path: "invoices/:id", rules: {}, handler: remove },
  ...lines.routes,
  ...collectionRoutes
]
