/** The inbox over a map, on Effect's clock: the readable twin of the SQL driver. */
import { Clock, Effect } from "effect"
import type { InboxTotal, WebhookInbox, WebhookVerdict } from "../WebhookInbox.ts"
import type { WebhookEvent } from "../WebhookSource.ts"

interface Kept {
  readonly event: WebhookEvent
  readonly receivedMs: number
  deliveries: number
  tries: number
  dueMs: number
  verdict: WebhookVerdict | null
  detail: string | null
}

export const makeWebhookInboxMemory = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe()
  const events = new Map<string, Kept>()
  const waiting = (id: string) => {
    const kept = events.get(id)
    return kept?.verdict === null ? kept : undefined
  }

  const service: WebhookInbox["Service"] = {
    receive: (event) =>
      Effect.sync(() => {
        const kept = events.get(event.id)
        if (kept !== undefined) {
          kept.deliveries += 1
          return false
        }
        events.set(event.id, { event, receivedMs: now(), deliveries: 1, tries: 0, dueMs: now(), verdict: null, detail: null })
        return true
      }),
    take: (limit, holdMs) =>
      Effect.sync(() =>
        [...events.values()]
          .filter((kept) => kept.verdict === null && kept.dueMs <= now())
          .sort((a, b) => a.dueMs - b.dueMs)
          .slice(0, limit)
          .sort((a, b) => a.receivedMs - b.receivedMs)
          .map((kept) => {
            const tries = kept.tries
            kept.dueMs = now() + holdMs
            kept.tries += 1
            return { event: kept.event, tries }
          })
      ),
    finish: (id, verdict, detail) =>
      Effect.sync(() => {
        const kept = waiting(id)
        if (kept === undefined) return
        kept.verdict = verdict
        kept.detail = detail
      }),
    postpone: (id, afterMs, detail) =>
      Effect.sync(() => {
        const kept = waiting(id)
        if (kept === undefined) return
        kept.dueMs = now() + afterMs
        kept.detail = detail
      }),
    recent: (limit) => Effect.sync(() => [...events.values()].toReversed().slice(0, limit).map(({ deliveries, detail, event, receivedMs, tries, verdict }) => ({ event, deliveries, receivedMs, tries, verdict, detail }))),
    totals: Effect.sync(() => {
      const totals = new Map<WebhookVerdict | null, number>()
      for (const { verdict } of events.values()) totals.set(verdict, (totals.get(verdict) ?? 0) + 1)
      return [...totals].map(([verdict, events]): InboxTotal => ({ verdict, events }))
    }),
    purge: (olderThanMs, limit) =>
      Effect.sync(() => {
        const old = [...events.values()].filter((kept) => kept.verdict !== null && kept.receivedMs < now() - olderThanMs).slice(0, limit)
        for (const { event } of old) events.delete(event.id)
        return old.length
      })
  }
  return service
})
