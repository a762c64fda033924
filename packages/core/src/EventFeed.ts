/**
 * The contract of reading the charge event feed: the ledger's events in order, each exactly once, from where the reader
 * wants to begin. Which implementation an app uses, the ledger's own database or a publisher's sockets, is its layer.
 */
import { Context, type Stream } from "effect"
import type { FeedError } from "./FeedError.ts"
import type { FeedNotice, FeedStart } from "./FeedEvent.ts"
import type { TransportError } from "./TransportError.ts"

/** The feed. A reader that stores `sequence` and `epoch` of the last event with its effect goes on after a crash without a second effect. */
export class EventFeed extends Context.Service<EventFeed, {
  /** Never ends by itself. Fails with `ReplayGap` when events that the reader is owed are not there any more. */
  readonly follow: (start: FeedStart) => Stream.Stream<FeedNotice, FeedError | TransportError>
}>()("@purser/core/EventFeed") {}
