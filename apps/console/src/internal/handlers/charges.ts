/** Charges: the search, the sums, and one charge's whole story put together from every book that knows of it. */
import { Attention, ChargeKey, ChargeSearch, declineAdvice, Ledger, OperatorTrail, RefundLedger, Sightings, type ChargeLine, type ChargeRecord } from "@purser/core"
import { Cache, Clock, Duration, Effect, Exit, Option, Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ConsoleApi } from "../../api/ConsoleApi.ts"
import { ActRefused, NotThere } from "../../api/ConsoleError.ts"
import type { Story, StoryLine } from "../../api/Shapes.ts"
import { isOpen, isRetryable, ProcessorDesk } from "../../ProcessorDesk.ts"
import { away, makePerform } from "../perform.ts"
import { objectsOf } from "../stripeObjects.ts"

const Place = Schema.fromJsonString(Schema.Struct({ customerId: Schema.String, billingPeriod: Schema.String, chargeKey: Schema.String }))
const readPlace = Schema.decodeUnknownOption(Place)
const writePlace = Schema.encodeSync(Place)

const lineOf = (record: ChargeRecord, updatedAtMs: number): ChargeLine => ({
  chargeKey: record.chargeKey,
  namespace: record.request.namespace,
  customerId: record.request.customerId,
  billingPeriod: record.request.billingPeriod,
  item: record.request.item ?? null,
  revision: record.request.revision ?? 0,
  amountMinor: record.request.amountMinor,
  receivedMinor: record.outcome?._tag === "Succeeded" ? record.outcome.amountReceivedMinor : null,
  currency: record.request.currency,
  stripeCustomerId: record.request.stripeCustomerId,
  state: record.state,
  attempt: record.attempt,
  paymentIntentId: record.paymentIntentId,
  quarantine: record.quarantine,
  detail: record.outcome !== null && "detail" in record.outcome ? record.outcome.detail : null,
  updatedAtMs
})

const noDesk = new ActRefused({ message: "this console has no key to Stripe (PURSER_STRIPE_KEY): use the command" })

/** The handlers of the group. */
export const layer = HttpApiBuilder.group(ConsoleApi, "charges", Effect.fnUntraced(function*(handlers) {
  const search = yield* ChargeSearch
  const ledger = yield* Ledger
  const refunds = yield* RefundLedger
  const sightings = yield* Sightings
  const attention = yield* Attention
  const trail = yield* OperatorTrail
  const perform = yield* makePerform
  const desk = yield* Effect.serviceOption(ProcessorDesk)

  // Sums read every charge of the period, so that one answer serves all who look, the longer the more it took.
  const totals = yield* Cache.makeWith(
    Effect.fnUntraced(function*(period: string) {
      const atMs = yield* Clock.currentTimeMillis
      const totals = yield* Effect.mapError(ledger.report(period === "" ? undefined : period), away)
      return { totals, atMs, tookMs: (yield* Clock.currentTimeMillis) - atMs }
    }),
    { capacity: 64, timeToLive: (exit) => Duration.millis(Exit.isSuccess(exit) ? Math.max(1000, exit.value.tookMs * 10) : 0) }
  )

  const storyOf = Effect.fnUntraced(function*(chargeKey: ChargeKey) {
    const record = yield* ledger.find(chargeKey)
    if (record === undefined) return undefined
    const events = yield* ledger.events(chargeKey)
    const given = yield* refunds.list(chargeKey)
    const refundEvents = yield* Effect.forEach(given, (refund) => Effect.map(refunds.events(refund.refundKey), (lines) => ({ refund, lines })))
    const movements = yield* sightings.movements(chargeKey)
    const conflicts = yield* attention.conflictsOf(chargeKey)
    const acts = yield* trail.actsOn(chargeKey, 200)
    const lines: Array<StoryLine> = [
      ...events.map(({ atMs, attempt, detail, from, principal, to, worker }): StoryLine =>
        ({ atMs, kind: "charge", from, to, who: worker, principal, attempt, detail })),
      ...refundEvents.flatMap(({ lines, refund }) => lines.map(({ atMs, attempt, detail, from, to, worker }): StoryLine => ({
        atMs, kind: "refund", from, to, who: worker ?? (from === null ? refund.actor : null), principal: null, attempt,
        detail: [`refund ${refund.refundId}`, from === null ? refund.note : null, detail].filter((part) => part !== null && part !== "").join(": ")
      }))),
      ...movements.map(({ createdMs, id, kind, reason, status }): StoryLine =>
        ({ atMs: createdMs, kind: "elsewhere", from: null, to: `${kind} ${status}`, who: null, principal: null, attempt: null, detail: reason === null ? id : `${id}: ${reason}` })),
      ...acts.map(({ act, actor, atMs, detail, reason }): StoryLine =>
        ({ atMs, kind: "operator", from: null, to: act, who: actor, principal: null, attempt: null, detail: detail === null ? reason : `${reason} (${detail})` }))
    ]
    const { outcome } = record
    const decline = outcome?._tag === "Declined" ? declineAdvice(outcome) : undefined
    const able: Story["acts"] = [
      ...(isRetryable(record.state) && record.quarantine === null ? ["retry" as const] : []),
      ...(isOpen(record.state) && record.quarantine === null ? ["resume" as const] : []),
      ...(record.quarantine === null ? [] : ["end quarantine" as const])
    ]
    const story: Story = {
      charge: lineOf(record, events.at(-1)?.atMs ?? 0),
      generation: record.generation,
      chosenMethod: record.chosenMethod,
      nextAttemptAtMs: record.nextAttemptAtMs,
      revises: record.revises,
      revisedBy: (yield* refunds.revisedBy(chargeKey)) ?? null,
      advice: decline === undefined || outcome?._tag !== "Declined" ? null : { kind: decline.kind, remedy: decline.remedy, code: outcome.declineCode ?? outcome.code },
      objects: objectsOf(record, events, given, movements),
      refunds: given.map(({ actor, amountMinor, note, processorRefundId, refundId, requestedAtMs, state }) =>
        ({ actor, amountMinor, note, processorRefundId, refundId, requestedAtMs, state })),
      conflicts,
      lines: lines.toSorted((a, b) => a.atMs - b.atMs),
      acts: able
    }
    return story
  })

  return handlers
    .handle("find", Effect.fnUntraced(function*({ query }) {
      const customer = query.customer?.trim() ?? ""
      const after = query.after === undefined ? Option.none() : readPlace(Buffer.from(query.after, "base64url").toString())
      if (query.after !== undefined && Option.isNone(after)) return yield* new ActRefused({ message: "this is no place of the list" })
      const page = yield* Effect.mapError(search.find({
        ...(customer === "" ? {} : { customer: { text: customer, whole: query.match === "whole" } }),
        ...(query.period === undefined || query.period === "" ? {} : { billingPeriod: query.period }),
        ...(query.state === undefined ? {} : { state: query.state }),
        ...(query.paymentIntent === undefined || query.paymentIntent === "" ? {} : { paymentIntentId: query.paymentIntent.trim() })
      }, Option.getOrNull(after), query.limit ?? 100), away)
      return { ...page, next: page.next === null ? null : Buffer.from(writePlace(page.next)).toString("base64url") }
    }))
    .handle("totals", ({ query }) => Cache.get(totals, query.period ?? ""))
    .handle("story", Effect.fnUntraced(function*({ params }) {
      const story = yield* Effect.mapError(storyOf(ChargeKey.make(params.chargeKey)), away)
      return story ?? (yield* new NotThere({ message: "the ledger holds no such charge" }))
    }))
    .handle("retry", ({ params, payload: { paymentMethod, reason } }) =>
      perform({ act: "retry", subject: params.chargeKey, reason, ...(paymentMethod === undefined ? {} : { detail: `with ${paymentMethod}` }) }, (actor) =>
        Option.isNone(desk) ? Effect.fail(noDesk) : desk.value.retry(params.chargeKey, { actor, reason }, paymentMethod)))
    .handle("resume", ({ params, payload: { reason } }) =>
      perform({ act: "go on", subject: params.chargeKey, reason }, () => Option.isNone(desk) ? Effect.fail(noDesk) : desk.value.resume(params.chargeKey)))
}))
