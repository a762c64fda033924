/** `purser status --charge`: one charge with its trail, its refunds, and what was seen at Stripe beside it. */
import { type ChargeKey, Ledger, Money, RefundLedger, Sightings } from "@purser/core"
import { Stores } from "@purser/purser"
import { Effect } from "effect"
import { refused } from "../CommandFailed.ts"
import { givenBack } from "../ui/givenBack.ts"
import { out } from "../ui/Output.ts"
import { table } from "../ui/table.ts"

const time = (ms: number) => new Date(ms).toISOString()

/** Prints all that is known of one charge. */
export const chargeStatus = (chargeKey: ChargeKey, json: boolean) =>
  Effect.gen(function*() {
    const ledger = yield* Ledger
    const record = yield* ledger.find(chargeKey)
    if (record === undefined) return yield* refused(`the ledger holds no charge ${chargeKey}`)
    const refunds = yield* (yield* RefundLedger).list(chargeKey)
    const elsewhere = yield* (yield* Sightings).movements(chargeKey)
    const events = yield* ledger.events(chargeKey)
    const sums = givenBack(record, refunds, elsewhere)
    if (json) return yield* out(JSON.stringify({ ...record, refunds, elsewhere, givenBack: sums, events }))
    const { request } = record
    const money = (minor: number) => `${Money.formatMinor(BigInt(minor), request.currency)} ${request.currency}`
    yield* out([
      `${chargeKey}  ${record.state}${record.quarantine === null ? "" : `, quarantined: ${record.quarantine}`}`,
      `${request.customerId}  ${request.billingPeriod}${request.item === undefined ? "" : `  ${request.item}`}  ${money(request.amountMinor)} of ${request.stripeCustomerId}`,
      `attempt ${record.attempt}, generation ${record.generation}, object ${record.paymentIntentId ?? "none"}`
    ].join("\n"))
    const back = [
      ...refunds.map((refund) => [refund.processorRefundId ?? "", "refund", money(refund.amountMinor), refund.state, time(refund.requestedAtMs), "purser refund"]),
      ...elsewhere.map(({ amountMinor, createdMs, id, kind, status }) => [id, kind, money(amountMinor), status, time(createdMs), "elsewhere"])
    ]
    if (back.length > 0) yield* out(`\n${table(["at Stripe", "as", "amount", "status", "made", "by"], back, [2])}`)
    if (back.length > 0) {
      yield* out(`given back: ${money(sums.refundedMinor)} by refunds, ${money(sums.elsewhereMinor)} elsewhere; ${money(sums.leftMinor)} of ${money(sums.receivedMinor)} are left`)
    }
    yield* out(`\n${table(["at", "to", "attempt", "worker", "detail"], events.map(({ atMs, attempt, detail, to, worker }) => [
      time(atMs), to, String(attempt), worker ?? "", detail ?? ""
    ]), [2])}`)
  }).pipe(Effect.provide(Stores.layerConfig))
