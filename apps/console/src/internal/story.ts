/** One charge's whole story, put together from every book that knows of it. */
import {
  Attention, CallBook, type ChargeEvent, type ChargeKey, type ChargeLine, type ChargeRecord, declineAdvice, Ledger, type NotedCall, OperatorTrail, RefundLedger, type RunOfCharge,
  RunStats, Sightings
} from "@purser/core"
import { Effect } from "effect"
import type { Story, StoryLine } from "../api/Shapes.ts"
import { isOpen, isRetryable } from "../ProcessorDesk.ts"
import { objectsOf } from "./stripeObjects.ts"

/** Lines of one book; a charge that was tried for months has fewer. */
const linesMax = 500
const runsMax = 50

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

const blank = { from: null, who: null, principal: null, attempt: null, detail: null, requestId: null, runId: null } as const

/** The run that planned the charge: its plan was complete after the event, and it had begun before. */
const plannerOf = (runs: ReadonlyArray<RunOfCharge>, { atMs }: ChargeEvent): RunOfCharge | undefined =>
  runs
    .filter(({ begunAtMs, plannedAtMs }) => plannedAtMs !== null && begunAtMs <= atMs && plannedAtMs >= atMs)
    .toSorted((a, b) => a.plannedAtMs! - b.plannedAtMs!)[0]

const lineOfEvent = (runs: ReadonlyArray<RunOfCharge>) => (event: ChargeEvent): StoryLine => {
  const { atMs, attempt, detail, from, principal, to, worker } = event
  const planner = from === null && to === "planned" ? plannerOf(runs, event) : undefined
  const row = planner === undefined ? null : `line ${planner.line} of ${planner.source.split("/").at(-1) ?? planner.runId}`
  return { ...blank, atMs, kind: "charge", from, to, who: worker ?? planner?.actor ?? null, principal, attempt, detail: detail ?? row, runId: planner?.runId ?? null }
}

const lineOfCall = ({ atMs, elapsedMs, operation, replayed, requestId, status }: NotedCall): StoryLine =>
  ({ ...blank, atMs, kind: "call", to: `${operation} ${status}`, detail: `${elapsedMs} ms${replayed ? ", the stored answer of an earlier call" : ""}`, requestId })

/** Tells stories. */
export const makeStories = Effect.gen(function*() {
  const ledger = yield* Ledger
  const refunds = yield* RefundLedger
  const sightings = yield* Sightings
  const attention = yield* Attention
  const trail = yield* OperatorTrail
  const calls = yield* CallBook
  const stats = yield* RunStats

  return Effect.fnUntraced(function*(chargeKey: ChargeKey) {
    const record = yield* ledger.find(chargeKey)
    if (record === undefined) return undefined
    const events = yield* ledger.events(chargeKey)
    const given = yield* refunds.list(chargeKey)
    const refundEvents = yield* Effect.forEach(given, (refund) => Effect.map(refunds.events(refund.refundKey), (lines) => ({ refund, lines })))
    const movements = yield* sightings.movements(chargeKey)
    const conflicts = yield* attention.conflictsOf(chargeKey)
    const acts = yield* trail.actsOn(chargeKey, linesMax)
    const made = yield* calls.of(chargeKey, linesMax)
    const runs = yield* stats.runsOf(chargeKey, runsMax)
    const lines: Array<StoryLine> = [
      ...events.map(lineOfEvent(runs)),
      ...made.map(lineOfCall),
      ...refundEvents.flatMap(({ lines, refund }) => lines.map(({ atMs, attempt, detail, from, to, worker }): StoryLine => ({
        ...blank, atMs, kind: "refund", from, to, who: worker ?? (from === null ? refund.actor : null), attempt,
        detail: [`refund ${refund.refundId}`, from === null ? refund.note : null, detail].filter((part) => part !== null && part !== "").join(": ")
      }))),
      ...movements.map(({ createdMs, id, kind, reason, status }): StoryLine =>
        ({ ...blank, atMs: createdMs, kind: "elsewhere", to: `${kind} ${status}`, detail: reason === null ? id : `${id}: ${reason}` })),
      ...acts.map(({ act, actor, atMs, detail, reason }): StoryLine =>
        ({ ...blank, atMs, kind: "operator", to: act, who: actor, detail: detail === null ? reason : `${reason} (${detail})` }))
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
      runs,
      conflicts,
      lines: lines.toSorted((a, b) => a.atMs - b.atMs),
      acts: able
    }
    return story
  })
})
