/** `purser show`: all that the ledger holds about one charge. */
import { type ChargeIdentity, chargeKeyOf, type Currency, declineAdvice, Ledger, Money, RefundLedger, Sightings } from "@purser/core"
import { Stores } from "@purser/purser"
import { Effect } from "effect"
import { refused } from "../CommandFailed.ts"
import { chargesOf, showAll } from "./showCustomer.ts"
import { givenBack } from "../ui/givenBack.ts"
import { nextStep } from "../ui/nextStep.ts"
import { out } from "../ui/Output.ts"
import { table } from "../ui/table.ts"

const at = (ms: number) => new Date(ms).toISOString()

/** Prints one charge with its refunds, revisions, what was seen at the processor, and its events. */
export const show = (identity: ChargeIdentity, json: boolean) =>
  Effect.gen(function*() {
    const ledger = yield* Ledger
    const book = yield* RefundLedger
    const chargeKey = chargeKeyOf(identity)
    const record = yield* ledger.find(chargeKey)
    if (record === undefined) {
      const all = identity.item === undefined ? yield* chargesOf(identity) : []
      return all.length === 0 ? yield* refused("the ledger holds no such charge") : yield* showAll(all, json)
    }
    const refunds = yield* book.list(chargeKey)
    const revisedBy = yield* book.revisedBy(chargeKey)
    const events = yield* ledger.events(chargeKey)
    const movements = yield* (yield* Sightings).movements(chargeKey)
    const { outcome, request } = record
    const back = givenBack(record, refunds, movements)
    const decline = outcome?._tag === "Declined" ? declineAdvice(outcome) : undefined
    if (json) {
      return yield* out(JSON.stringify({
        ...record, request: { ...request }, decline: decline ?? null, next: nextStep(record, back), givenBack: back, refunds, revisedBy: revisedBy ?? null, movements, events
      }))
    }
    const money = (minor: number) => `${Money.formatMinor(minor, request.currency)} ${request.currency}`
    const revision = request.revision === undefined ? [] : [["revision", `${request.revision}, billed anew after ${record.revises}`]]
    const lines = [
      ["charge", chargeKey],
      ["customer", `${request.customerId} (${request.stripeCustomerId})`],
      ["period", `${request.billingPeriod}${request.item === undefined ? "" : `, item ${request.item}`}`],
      ...revision,
      ...(revisedBy === undefined ? [] : [["billed anew by", revisedBy]]),
      ["amount", money(request.amountMinor)],
      ["state", `${record.state}, attempt ${record.attempt}${record.quarantine === null ? "" : `, quarantined: ${record.quarantine}`}`],
      ...(record.paymentIntentId === null ? [] : [["object", record.paymentIntentId]]),
      ...(record.chosenMethod === null ? [] : [["chosen method", record.chosenMethod]]),
      ...(outcome?._tag === "Declined"
        ? [["declined", `${outcome.declineCode ?? outcome.code} (${decline?.kind}${outcome.adviceCode === null ? "" : `, advice ${outcome.adviceCode}`})`]]
        : []),
      ...(outcome?._tag === "Succeeded" && back.refundedMinor + back.elsewhereMinor > 0
        ? [["given back", `${money(back.refundedMinor)} by refunds, ${money(back.elsewhereMinor)} elsewhere; ${money(back.leftMinor)} of ${money(back.receivedMinor)} are left`]]
        : []),
      ["next", nextStep(record, back)]
    ]
    yield* out(lines.map(([name, value]) => `${name!.padEnd(15)}${value}`).join("\n"))
    if (refunds.length > 0) {
      yield* out(`\n${table(["refund", "amount", "state", "at Stripe", "who", "why"], refunds.map((refund) => [
        refund.refundId, money(refund.amountMinor), refund.state, refund.processorRefundId ?? "", refund.actor, refund.note
      ]), [1])}`)
    }
    if (movements.length > 0) {
      yield* out(`\n${table(["seen at Stripe", "kind", "amount", "status"], movements.map((movement) => [
        movement.id, movement.kind, `${Money.formatMinor(movement.amountMinor, movement.currency as Currency)} ${movement.currency}`, movement.status
      ]))}`)
    }
    // Whose key asked is known of claims that came over a transport with keys.
    const askers = events.some(({ principal }) => principal !== null)
    yield* out(`\n${table(["time", "from", "to", "attempt", "who", ...(askers ? ["asked by"] : []), "what"], events.map((event) => [
      at(event.atMs), event.from ?? "", event.to, String(event.attempt), event.worker ?? "", ...(askers ? [event.principal ?? ""] : []), event.detail ?? ""
    ]), [3])}`)
  }).pipe(Effect.provide(Stores.layerConfig))
