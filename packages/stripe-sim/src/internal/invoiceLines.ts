/**
 * `/v1/invoices/:id/lines`, `/add_lines`, `/remove_lines`.
 *
 * A line is an invoice item on its invoice. Adding is not remembered beyond the idempotency key: the same lines sent
 * twice are there twice, as at Stripe.
 */
import type { Stripe } from "stripe"
import type { Account } from "./Account.ts"
import { type Answer, invalid, missing, ok } from "./answer.ts"
import { found, shown } from "./invoiceCollection.ts"
import { amountOf, drop, frozen, newItem } from "./invoiceItems.ts"
import { lineRules, linesRules, listLinesRules } from "./invoiceRules.ts"
import { become, itemsOf } from "./invoiceState.ts"
import { check, hashes, integer, type Params, required, text } from "./params.ts"
import type { InvoiceItemRecord } from "./records.ts"
import * as render from "./renderInvoice.ts"
import type { Route } from "./route.ts"

// The rules of one line know nothing that an API version changes.
const anyVersion = ""

const list = (account: Account, params: Params, id: string): Answer =>
  found(account, id, () => {
    const items = itemsOf(account, id)
    const limit = Math.min(100, Math.max(1, integer(params, "limit") ?? 10))
    const cursor = text(params, "starting_after")
    const at = cursor === undefined ? -1 : items.findIndex(({ lineId }) => lineId === cursor)
    if (cursor !== undefined && at === -1) return missing("line_item", cursor, "starting_after", false)
    const before = text(params, "ending_before")
    const end = before === undefined ? items.length : items.findIndex(({ lineId }) => lineId === before)
    if (end === -1) return missing("line_item", before ?? "", "ending_before", false)
    const data = before === undefined ? items.slice(at + 1, at + 1 + limit) : items.slice(Math.max(0, end - limit), end)
    const more = before === undefined ? at + 1 + limit < items.length : end - limit > 0
    return ok((): Stripe.ApiList<render.WireLine> => ({
      object: "list",
      data: data.map(render.line),
      has_more: more,
      url: `/v1/invoices/${id}/lines`
    }))
  })

const add = (account: Account, params: Params, id: string): Answer =>
  found(account, id, (invoice) => {
    const given = hashes(params, "lines")
    if (given.length === 0) return required("lines")
    const fixed = frozen(invoice)
    if (fixed !== undefined) return fixed
    // All lines are looked at before the first is added: a refusal adds none.
    for (const line of given) {
      const refused = check(line, lineRules, anyVersion)
      if (refused !== undefined) return refused
      const named = text(line, "invoice_item")
      if (named === undefined) {
        const amount = amountOf(line)
        if (!("amountMinor" in amount)) return amount
      } else {
        const item = account.invoiceItems.get(named)
        if (item === undefined || item.invoice !== null || item.customer !== invoice.customer) {
          return missing("invoiceitem", named, "lines[invoice_item]", false)
        }
      }
    }
    for (const line of given) {
      const item = account.invoiceItems.get(text(line, "invoice_item") ?? "")
      if (item === undefined) newItem(account, line, { customer: invoice.customer, invoice: id, currency: invoice.currency })
      else account.invoiceItems.put<InvoiceItemRecord>({ ...item, invoice: id })
    }
    return shown(account, become(account, invoice, "invoice.updated"), params)
  })

const remove = (account: Account, params: Params, id: string): Answer =>
  found(account, id, (invoice) => {
    const given = hashes(params, "lines")
    if (given.length === 0) return required("lines")
    const fixed = frozen(invoice)
    if (fixed !== undefined) return fixed
    const items = itemsOf(account, id)
    const removed: Array<{ readonly item: InvoiceItemRecord; readonly unassign: boolean }> = []
    for (const line of given) {
      const item = items.find(({ lineId }) => lineId === text(line, "id"))
      if (item === undefined) return missing("line_item", text(line, "id") ?? "", "lines[id]", false)
      const behavior = text(line, "behavior")
      if (behavior !== "delete" && behavior !== "unassign") {
        return invalid("Invalid behavior: must be one of delete, unassign", "lines[behavior]")
      }
      removed.push({ item, unassign: behavior === "unassign" })
    }
    for (const { item, unassign } of removed) {
      if (unassign) account.invoiceItems.put<InvoiceItemRecord>({ ...item, invoice: null })
      else drop(account, item)
    }
    return shown(account, become(account, invoice, "invoice.updated"), params)
  })

/** The endpoints of this part of the resource. */
export const routes: ReadonlyArray<Route> = [
  { method: "GET", path: "invoices/:id/lines", rules: listLinesRules, handler: list },
  { method: "POST", path: "invoices/:id/add_lines", rules: linesRules, handler: add },
  { method: "POST", path: "invoices/:id/remove_lines", rules: linesRules, handler: remove }
]
