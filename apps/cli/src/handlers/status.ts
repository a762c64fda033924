/** `purser status`: charges by period and state, and the caps. */
import { type BillingPeriod, ChargePause, type Currency, Ledger, Money, RefundLedger, SpendCap } from "@purser/core"
import { Stores } from "@purser/purser"
import { Effect } from "effect"
import { out } from "../ui/Output.ts"
import { table } from "../ui/table.ts"
import { capRows, capTable } from "./cap.ts"
import { pauseText } from "./pause.ts"

/** Prints what the ledger holds. */
export const status = (options: { readonly period: BillingPeriod | undefined; readonly json: boolean }) =>
  Effect.gen(function*() {
    const totals = yield* (yield* Ledger).report(options.period)
    const caps = yield* (yield* SpendCap).report(options.period)
    const book = yield* RefundLedger
    const refunds = yield* book.report(options.period)
    const elsewhere = yield* book.reportElsewhere(options.period)
    const pauses = yield* (yield* ChargePause).inForce
    if (options.json) {
      return yield* out(JSON.stringify({
        pauses,
        charges: totals.map((total) => ({ ...total, amountMinor: Number(total.amountMinor), receivedMinor: Number(total.receivedMinor) })),
        refunds: refunds.map((total) => ({ ...total, amountMinor: Number(total.amountMinor), givenBackMinor: total.state === "succeeded" ? Number(total.amountMinor) : 0 })),
        refundedElsewhere: elsewhere.map((total) => ({ ...total, amountMinor: Number(total.amountMinor) })),
        caps: capRows(caps)
      }))
    }
    const quarantined = totals.reduce((sum, total) => sum + total.quarantined, 0)
    const money = (amount: bigint, currency: string) => Money.formatMinor(amount, currency as Currency)
    yield* out(totals.length === 0 ? "no charges" : table(
      ["period", "currency", "state", "charges", "billed", "received"],
      totals.map((total) => [
        total.billingPeriod, total.currency, total.state, String(total.charges),
        money(total.amountMinor, total.currency), money(total.receivedMinor, total.currency)
      ]),
      [3, 4, 5]
    ))
    if (quarantined > 0) yield* out(`${quarantined} charges are quarantined: Stripe's object differs from the row`)
    if (refunds.length + elsewhere.length > 0) {
      yield* out(`\n${table(
        ["period", "currency", "refunds", "count", "asked for", "given back"],
        [
          ...refunds.map((total) => [
            total.billingPeriod, total.currency, total.state, String(total.refunds), money(total.amountMinor, total.currency),
            money(total.state === "succeeded" ? total.amountMinor : 0n, total.currency)
          ]),
          ...elsewhere.map((total) => [total.billingPeriod, total.currency, "elsewhere", String(total.refunds), "", money(total.amountMinor, total.currency)])
        ],
        [3, 4, 5]
      )}`)
    }
    for (const pause of pauses) yield* out(pauseText(pause))
    if (caps.length > 0) yield* out(`\n${capTable(caps)}`)
  }).pipe(Effect.provide(Stores.layerConfig))
