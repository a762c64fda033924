/**
 * The contract of the event log: the ledger's events in one global order without gaps.
 *
 * Events become visible in another order than that in which they were numbered, and what is rolled back leaves a hole.
 * So the place in the order is given afterwards, by `advance`, to events that are certain, and is kept. An event that has
 * a place never changes it, none is left out, and those of one charge keep their own order. It writes no event.
 */
import { Context, Effect, Layer } from "effect"
import type { ChargeKey } from "./ChargeKey.ts"
import type { FeedError } from "./FeedError.ts"
import { cursorAfter, type FeedCursor, type FeedEvent } from "./FeedEvent.ts"
import { makeEventLogMemory } from "./internal/eventLogMemory.ts"
import type { Ledger } from "./Ledger.ts"

/** The ends of the log: the last place that was given, and the place up to which history was trimmed. */
export interface LogHead {
  readonly sequence: number
  readonly trimmedTo: number
}

/** A part of a snapshot in the order of keys; `next` is where to go on, null at the end. */
export interface SnapshotPage {
  readonly states: ReadonlyArray<FeedEvent>
  readonly next: ChargeKey | null
}

/** The event log. Every method needs nothing and fails with `FeedError` only. */
export class EventLog extends Context.Service<EventLog, {
  /** Notes a new life of a publisher, so that cursors which name it are known to be of this history. */
  readonly beginEpoch: (epoch: string) => Effect.Effect<void, FeedError>
  /** Gives places to some `limit` events that have none yet. Any number of processes may call it. `more`: call again at once. */
  readonly advance: (limit: number) => Effect.Effect<LogHead & { readonly more: boolean }, FeedError>
  /** The ends of the log as they are. */
  readonly head: Effect.Effect<LogHead, FeedError>
  /**
   * Up to `limit` events after the cursor, in order. Fails with `ReplayGap` when the next one is not there any more, or when another event
   * stands at the cursor's place than it says. Where history was trimmed exactly to that place, there is nothing to compare it with.
   */
  readonly read: (cursor: FeedCursor, limit: number) => Effect.Effect<ReadonlyArray<FeedEvent>, FeedError>
  /** How charges stood at a place of the order: the last event of each, `limit` charges after `afterKey` at a time. */
  readonly snapshot: (at: number, afterKey: ChargeKey | null, limit: number) => Effect.Effect<SnapshotPage, FeedError>
  /** Forgets the places of all but the last `keep` events, a bounded number at a time. The ledger keeps its events. */
  readonly trim: (keep: number) => Effect.Effect<LogHead, FeedError>
}>()("@purser/core/EventLog") {
  /** The log of a memory ledger. */
  static readonly layerMemory: Layer.Layer<EventLog, never, Ledger> = Layer.effect(EventLog, makeEventLogMemory)
}

/** The cursor of a place that the log has, with the event that stands there as long as it is not trimmed. */
export const cursorAt = (log: EventLog["Service"], sequence: number): Effect.Effect<FeedCursor, FeedError> => {
  const unmarked: FeedCursor = { epoch: null, sequence }
  if (sequence === 0) return Effect.succeed(unmarked)
  return log.read({ epoch: null, sequence: sequence - 1 }, 1).pipe(
    Effect.map(([event]) => event === undefined ? unmarked : cursorAfter(event, null)),
    Effect.catchIf(({ reason }) => reason._tag === "ReplayGap" && reason.why === "trimmed", () => Effect.succeed(unmarked))
  )
}
