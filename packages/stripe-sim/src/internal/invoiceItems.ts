/**
 * `/v1/invoiceitems`: create, retrieve, update, delete, list; and the reading of an amount, which invoice lines share.
 *
 * Refuses prices, discounts and taxes by name: an item here is an amount, or a whole unit amount times a quantity.
 */
import type Stripe from "stripe"
import { type Account, pendingOf } from "./Account.ts"
import { type Answer, fail, invalid, missing, ok, refuse } from "./answer.ts"
import { checkCurrency, checkCustomer } from "./checks.ts"
import { become, itemsOf } from "./invoiceState.ts"
import { page } from "./lists.ts"
import { hashOf, inHash, integer, mergeMetadata, type Params, required, type Rule, text, textOr } from "./params.ts"
import type { InvoiceItemRecord, InvoiceRecord } from "./records.ts"
import * as render from "./renderInvoice.ts"
import type { Route } from "./route.ts"

const shared = {
  amount: "int",
  description: "clearable",
  discountable: "bool",
  discounts: "unsimulated",
  expand: "unsimulated",
  metadata: "metadata",
  period: "hash",
  price_data: "hash",
  pricing: "unsimulated",
  quantity: "int",
  quantity_decimal: "unsimulated",
  tax_behavior: "unsimulated",
  tax_code: "unsimulated",
  tax_rates: "unsimulated",
  unit_amount_decimal: "int"
} as const

const createRules = {
  ...shared,
  currency: "string",
  customer: "string",
  customer_account: "unsimulated",
  invoice: "string",
  subscription: "unsimulated"
} as const satisfies Record<keyof Stripe.InvoiceItemCreateParams, Rule>

const updateRules = { ...shared, invoicing_rules: "unsimulated" } as const satisfies Record<
  keyof Stripe.InvoiceItemUpdateParams,
  Rule
>

const listRules = {
  created: "range",
  customer: "string",
  customer_account: "unsimulated",
  ending_before: "string",
  expand: "unsimulated",
  invoice: "string",
  limit: "int",
  pending: "bool",
  starting_after: "string"
} as const satisfies Record<keyof Stripe.InvoiceItemListParams, Rule>

const wholeNumber = /^-?[0-9]{1,15}$/

/** The amount that an item's parameters come to, in minor units, with its quantity. */
export const amountOf = (params: Params): { readonly amountMinor: number; readonly quantity: number } | Answer => {
  const quantity = integer(params, "quantity") ?? 1
  if (quantity < 0) return invalid("This value must be greater than or equal to 0.", "quantity", "parameter_invalid_integer")
  const unit = text(params, "unit_amount_decimal") ?? inHash(params, "price_data", "unit_amount") ??
    inHash(params, "price_data", "unit_amount_decimal")
  if (unit !== undefined) {
    if (params["amount"] !== undefined) {
      return invalid("You may only specify one of these parameters: amount, unit_amount_decimal.", "amount", "parameters_exclusive")
    }
    return wholeNumber.test(unit)
      ? { amountMinor: Number(unit) * quantity, quantity }
      : invalid("The simulator takes whole unit amounts only.", "unit_amount_decimal", "parameter_invalid_integer")
  }
  const amountMinor = integer(params, "amount")
  return amountMinor === undefined ? required("amount") : { amountMinor, quantity }
}

/** What is the same for each way to make an item. */
export const newItem = (
  account: Account,
  params: Params,
  owner: { readonly customer: string; readonly invoice: string | null; readonly currency: string }
): InvoiceItemRecord | Answer => {
  const amount = amountOf(params)
  if (!("amountMinor" in amount)) return amount
  const nowS = account.nowSFor(owner.customer)
  const start = inHash(params, "period", "start")
  const end = inHash(params, "period", "end")
  const made = account.invoiceItems.put<InvoiceItemRecord>({
    id: account.nextId("ii_1"),
    seq: account.invoiceItems.nextSeq,
    createdS: nowS,
    lineId: account.nextId("il_1"),
    ...owner,
    ...amount,
    description: text(params, "description") ?? null,
    periodStartS: start === undefined ? nowS : Number(start),
    periodEndS: end === undefined ? nowS : Number(end),
    metadata: mergeMetadata({}, params)
  })
  account.emit("invoiceitem.created", () => render.item(made, account.testClockOf(made.customer)))
  return made
}

/** Why lines of this invoice cannot change any more, or undefined while it is a draft. */
export const frozen = (invoice: InvoiceRecord | undefined): Answer | undefined =>
  invoice !== undefined && invoice.status !== "draft"
    ? refuse("This invoice is no longer editable", "invoice_not_editable", "invoice")
    : undefined

const touched = (account: Account, invoiceId: string | null): void => {
  const invoice = account.invoices.get(invoiceId ?? "")
  if (invoice !== undefined) become(account, invoice, "invoice.updated")
}

const shown = (account: Account, item: InvoiceItemRecord): Answer => {
  const clock = account.testClockOf(item.customer)
  return ok(() => render.item(item, clock))
}

const create = (account: Account, params: Params): Answer => {
  const invoiceId = text(params, "invoice") ?? null
  const invoice = account.invoices.get(invoiceId ?? "")
  if (invoiceId !== null && invoice === undefined) return missing("invoice", invoiceId, "invoice", false)
  const customer = text(params, "customer") ?? invoice?.customer
  if (customer === undefined) return required("customer")
  if (invoice !== undefined && invoice.customer !== customer) {
    return invalid(`The invoice ${invoice.id} does not belong to the customer ${customer}.`, "invoice")
  }
  const currency = (text(params, "currency") ?? inHash(params, "price_data", "currency") ?? invoice?.currency ?? "usd").toLowerCase()
  const refused = checkCustomer(account, customer) ?? checkCurrency(currency) ?? frozen(invoice)
  if (refused !== undefined) return refused
  if (invoice !== undefined && invoice.currency !== currency) {
    return itemsOf(account, invoice.id).length === 0 && invoice.currency === "usd"
      ? adopt(account, params, invoice, currency)
      : invalid(`The currency of the invoice item (${currency}) must match the invoice (${invoice.currency}).`, "currency")
  }
  const made = newItem(account, params, { customer, invoice: invoiceId, currency })
  if (!("lineId" in made)) return made
  touched(account, invoiceId)
  return shown(account, made)
}

/** The first item of an invoice that was made without a currency names it. */
const adopt = (account: Account, params: Params, invoice: InvoiceRecord, currency: string): Answer => {
  const made = newItem(account, params, { customer: invoice.customer, invoice: invoice.id, currency })
  if (!("lineId" in made)) return made
  become(account, { ...invoice, currency }, "invoice.updated")
  return shown(account, made)
}

const found = (account: Account, id: string, act: (item: InvoiceItemRecord) => Answer): Answer => {
  const item = account.invoiceItems.get(id)
  return item === undefined ? missing("invoiceitem", id, "id", true) : act(item)
}

const retrieve = (account: Account, _params: Params, id: string): Answer => found(account, id, (item) => shown(account, item))

const update = (account: Account, params: Params, id: string): Answer =>
  found(account, id, (item) => {
    const refused = frozen(account.invoices.get(item.invoice ?? ""))
    if (refused !== undefined) return refused
    const repriced = ["amount", "unit_amount_decimal", "price_data", "quantity"].some((name) => params[name] !== undefined)
    const amount = repriced ? amountOf(params) : { amountMinor: item.amountMinor, quantity: item.quantity }
    if (!("amountMinor" in amount)) return amount
    const period = hashOf(params, "period")
    const changed = account.invoiceItems.put<InvoiceItemRecord>({
      ...item,
      ...amount,
      description: textOr(params, "description", item.description),
      periodStartS: period === undefined ? item.periodStartS : Number(period["start"]),
      periodEndS: period === undefined ? item.periodEndS : Number(period["end"]),
      metadata: mergeMetadata(item.metadata, params)
    })
    touched(account, changed.invoice)
    return shown(account, changed)
  })

const remove = (account: Account, _params: Params, id: string): Answer =>
  found(account, id, (item) => {
    const refused = frozen(account.invoices.get(item.invoice ?? ""))
    if (refused !== undefined) return refused
    drop(account, item)
    touched(account, item.invoice)
    return ok((): Stripe.DeletedInvoiceItem => ({ id, object: "invoiceitem", deleted: true }))
  })

/** Takes an item out of the account. */
export const drop = (account: Account, item: InvoiceItemRecord): void => {
  account.invoiceItems.remove(item.id)
  account.emit("invoiceitem.deleted", () => render.item(item, account.testClockOf(item.customer)))
}

const list = (account: Account, params: Params): Answer => {
  const customer = text(params, "customer")
  const invoice = text(params, "invoice")
  const pending = text(params, "pending")
  const waiting = customer !== undefined && pending === "true" ? pendingOf(customer) : undefined
  if (invoice !== undefined && account.invoices.get(invoice) === undefined) {
    return fail({ status: 400, saved: false, type: "invalid_request_error", message: `No such invoice: '${invoice}'`, code: "resource_missing", param: "invoice" })
  }
  return page(account.invoiceItems, params, {
    url: "/v1/invoiceitems",
    what: "invoiceitem",
    group: invoice ?? waiting,
    show: (item) => render.item(item, account.testClockOf(item.customer)),
    where: (item) =>
      (customer === undefined || item.customer === customer) &&
      (pending === undefined || (item.invoice === null) === (pending === "true"))
  })
}

/** The endpoints of this resource. */
export const routes: ReadonlyArray<Route> = [
  { method: "POST", path: "invoiceitems", rules: createRules, handler: create },
  { method: "GET", path: "invoiceitems", rules: listRules, handler: list },
  { method: "GET", path: "invoiceitems/:id", rules: { expand: "unsimulated" }, handler: retrieve },
  { method: "POST", path: "invoiceitems/:id", rules: updateRules, handler: update },
  { method: "DELETE", path: "invoiceitems/:id", rules: {}, handler: remove }
]
