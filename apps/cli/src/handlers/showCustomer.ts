/** What one customer was billed in a period, item by item, with the sum: for `purser show` without an item. */
import { type ChargeIdentity, type ChargeRecord, Ledger, Money } from "@purser/core"
import { Effect } from "effect"
import { out } from "../ui/Output.ts"
import { table } from "../ui/table.ts"

const pageSize = 1000

/** All items and revisions of this customer and period in the namespace. The period is read page by page. */
export const chargesOf = Effect.fnUntraced(function*({ billingPeriod, customerId, namespace }: ChargeIdentity) {
  const ledger = yield* Ledger
  const found: Array<ChargeRecord> = []
  let after = ""
  for (;;) {
    const page = yield* ledger.page(billingPeriod, after, pageSize)
    found.push(...page.filter(({ request }) => request.customerId === customerId && request.namespace === namespace))
    if (page.length < pageSize) break
    after = page.at(-1)!.chargeKey
  }
  const name = ({ request }: ChargeRecord) => `${request.item ?? ""}\u0000${String(request.revision ?? 0).padStart(9, "0")}`
  return found.sort((a, b) => name(a) < name(b) ? -1 : 1)
})

const receivedOf = ({ outcome }: ChargeRecord) => outcome?._tag === "Succeeded" ? outcome.amountReceivedMinor : 0

/** Prints them with what was billed and received in each currency; refunds are in `purser show … --item`. */
export const showAll = Effect.fnUntraced(function*(records: ReadonlyArray<ChargeRecord>, json: boolean) {
  const sums = [...Map.groupBy(records, ({ request }) => request.currency)].map(([currency, of]) => ({
    currency,
    charges: of.length,
    billedMinor: of.reduce((sum, { request }) => sum + request.amountMinor, 0),
    receivedMinor: of.reduce((sum, record) => sum + receivedOf(record), 0)
  }))
  if (json) return yield* out(JSON.stringify({ charges: records, sums }))
  const rows = records.map((record) => [
    record.request.item ?? "", String(record.request.revision ?? 0), record.state, record.request.currency,
    Money.formatMinor(BigInt(record.request.amountMinor), record.request.currency), Money.formatMinor(BigInt(receivedOf(record)), record.request.currency),
    record.chargeKey
  ])
  const totals = sums.map(({ billedMinor, currency, receivedMinor }) => [
    "sum", "", "", currency, Money.formatMinor(BigInt(billedMinor), currency), Money.formatMinor(BigInt(receivedMinor), currency), ""
  ])
  yield* out(table(["item", "revision", "state", "currency", "billed", "received", "charge key"], [...rows, ...totals], [1, 4, 5]))
})
