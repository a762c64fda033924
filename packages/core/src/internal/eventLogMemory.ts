/**
 * The event log over a memory ledger: a list that grows when it is asked to. A charge's events are those of its row; the
 * log remembers how many of them it has.
 */
import { Effect } from "effect"
import type { ChargeKey } from "../ChargeKey.ts"
import type { EventLog, LogHead } from "../EventLog.ts"
import { FeedError, ReplayGap } from "../FeedError.ts"
import { type FeedEvent, isAfter } from "../FeedEvent.ts"
import { Ledger } from "../Ledger.ts"
import { type MemoryRow, memoryRows } from "./ledgerMemory.ts"

const eventsOf = (row: MemoryRow, from: number): ReadonlyArray<Omit<FeedEvent, "sequence">> =>
  row.events.slice(from).map(({ sequence, ...event }) => ({
    chargeKey: event.chargeKey,
    chargeSequence: sequence,
    atMs: event.atMs,
    from: event.from,
    to: event.to,
    worker: event.worker,
    attempt: event.attempt,
    detail: event.detail,
    principal: event.principal,
    namespace: row.request.namespace,
    customerId: row.request.customerId,
    billingPeriod: row.request.billingPeriod,
    item: row.request.item ?? null,
    amountMinor: row.request.amountMinor,
    currency: row.request.currency
  }))

export const makeEventLogMemory: Effect.Effect<EventLog["Service"], never, Ledger> = Effect.gen(function*() {
  const rows = memoryRows.get(yield* Ledger)
  if (rows === undefined) return yield* Effect.die(new Error("Bug: the memory event log needs the memory ledger"))
  const log: Array<FeedEvent> = []
  const logged = new Map<ChargeKey, number>()
  const epochs = new Set<string>()
  let trimmedTo = 0
  const head = (): LogHead => ({ sequence: log.length, trimmedTo })

  return {
    beginEpoch: (epoch) => Effect.sync(() => void epochs.add(epoch)),
    head: Effect.sync(head),
    advance: (limit) =>
      Effect.sync(() => {
        const found: Array<Omit<FeedEvent, "sequence">> = []
        for (const row of rows.values()) {
          const known = logged.get(row.chargeKey) ?? 0
          if (row.events.length > known) found.push(...eventsOf(row, known))
        }
        // Stable: events of one charge at one instant keep their order.
        found.sort((a, b) => a.atMs - b.atMs)
        for (const event of found.slice(0, limit)) {
          log.push({ sequence: log.length + 1, ...event })
          logged.set(event.chargeKey, event.chargeSequence)
        }
        return { ...head(), more: found.length > limit }
      }),
    read: (cursor, limit) =>
      Effect.suspend(() => {
        const { epoch, sequence } = cursor
        const stands = sequence > trimmedTo ? log[sequence - 1] : undefined
        const known = (epoch === null || epochs.has(epoch)) && (stands === undefined || isAfter(cursor, stands))
        if (known && sequence >= trimmedTo && sequence <= log.length) return Effect.succeed(log.slice(sequence, sequence + limit))
        const why = known && sequence < trimmedTo ? "trimmed" : "other_history"
        return Effect.fail(new FeedError({ reason: new ReplayGap({ after: sequence, oldest: trimmedTo + 1, newest: log.length, why }) }))
      }),
    snapshot: (at, afterKey, limit) =>
      Effect.sync(() => {
        const last = new Map<ChargeKey, FeedEvent>()
        for (const event of log.slice(0, at)) last.set(event.chargeKey, event)
        const keys = [...last.keys()].filter((key) => afterKey === null || key > afterKey).sort()
        const page = keys.slice(0, limit)
        return {
          states: page.map((key) => last.get(key)!).map((event) => event.sequence > trimmedTo ? event : { ...event, sequence: 0 }),
          next: keys.length > limit ? page.at(-1)! : null
        }
      }),
    trim: (keep) =>
      Effect.sync(() => {
        trimmedTo = Math.max(trimmedTo, log.length - keep)
        return head()
      })
  }
})
