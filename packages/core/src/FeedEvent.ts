/**
 * What a charge event feed carries: the ledger's events, each with a place in one global order, and what a reader of the
 * feed is told beside them. A feed reports; nothing that it says decides whether a charge is made.
 */
import { Effect, Schema } from "effect"
import { ChargeKey } from "./ChargeKey.ts"

const State = Schema.Literals(["planned", "claimed", "attached", "processing", "requires_action", "succeeded", "declined", "rejected", "canceled"])

/**
 * One event of the ledger with its place: `sequence` counts all events of the ledger from 1 without a gap, and stays the
 * event's own for ever. `chargeSequence` counts those of one charge. In a snapshot `sequence` is 0 where the place of a
 * charge's last event was trimmed. `principal` is the name of the key that asked, on claims whose transport knows it; a
 * publisher of before says nothing, which reads as null. Amounts are minor units.
 */
export const FeedEvent = Schema.Struct({
  sequence: Schema.Int,
  chargeKey: ChargeKey,
  chargeSequence: Schema.Int,
  atMs: Schema.Finite,
  from: Schema.NullOr(State),
  to: State,
  worker: Schema.NullOr(Schema.String),
  attempt: Schema.Int,
  detail: Schema.NullOr(Schema.String),
  principal: Schema.NullOr(Schema.String).pipe(Schema.withDecodingDefaultKey(Effect.succeed(null))),
  namespace: Schema.String,
  customerId: Schema.String,
  billingPeriod: Schema.String,
  item: Schema.NullOr(Schema.String),
  amountMinor: Schema.Int,
  currency: Schema.String
})
export type FeedEvent = typeof FeedEvent.Type

/**
 * Which event stands at a place: its charge, its number among that charge's events, and when it was. Without the time a run that is
 * repeated after a restore could put the same event of the same charge at the same place.
 */
export const FeedMark = Schema.Struct({ chargeKey: ChargeKey, chargeSequence: Schema.Int, atMs: Schema.Finite })
export type FeedMark = typeof FeedMark.Type

/**
 * How far a reader has come. `epoch` names the life of the publisher that it heard this from, and `event` what stands at the place. A feed
 * that does not know the epoch, or has another event there, has another history, for example a database that was put back to an older
 * state. Only `event` tells that of an epoch which began before: who leaves it out is not warned of what came between.
 */
export interface FeedCursor {
  readonly epoch: string | null
  readonly sequence: number
  readonly event?: FeedMark | undefined
}

/** The cursor of a reader that has dealt with an event. */
export const cursorAfter = ({ atMs, chargeKey, chargeSequence, sequence }: FeedEvent, epoch: string | null): FeedCursor =>
  ({ epoch, sequence, event: { chargeKey, chargeSequence, atMs } })

/** Whether a cursor can be after the event that stands at its place. Times are compared to the millisecond: a reader may have kept no more of them. */
export const isAfter = ({ event: mark }: FeedCursor, event: FeedMark): boolean =>
  mark === undefined || (mark.chargeKey === event.chargeKey && mark.chargeSequence === event.chargeSequence && Math.abs(mark.atMs - event.atMs) < 1)

/** Where a reader begins: how every charge stands now and then what happens; the whole history; from now on; or after what it has. */
export type FeedStart =
  | { readonly _tag: "Snapshot" }
  | { readonly _tag: "Beginning" }
  | { readonly _tag: "Now" }
  | { readonly _tag: "After"; readonly cursor: FeedCursor }

/**
 * What a reader gets. `State`: one charge of the snapshot, by its last event. `Synced`: snapshot or history is complete,
 * what follows is new after `cursor`. `Event`: the next event; never twice and never with one left out. `Epoch`: another
 * life of the publisher. `Lagged`: the events up to `to` did not arrive, because messages were `lost` on the way or
 * because the reader was too slow and its buffer `overrun`; they are fetched. `Restarted`: what the reader was owed after
 * `after` is gone, and a snapshot follows, as it asked for in that case. `Silent`: the publisher has not been heard for so long.
 */
export type FeedNotice =
  | { readonly _tag: "State"; readonly event: FeedEvent }
  | { readonly _tag: "Synced"; readonly cursor: FeedCursor }
  | { readonly _tag: "Event"; readonly event: FeedEvent; readonly epoch: string | null }
  | { readonly _tag: "Epoch"; readonly epoch: string }
  | { readonly _tag: "Lagged"; readonly reason: "lost" | "overrun"; readonly after: number; readonly to: number }
  | { readonly _tag: "Restarted"; readonly after: number; readonly why: "trimmed" | "other_history" }
  | { readonly _tag: "Silent"; readonly silentMs: number }
