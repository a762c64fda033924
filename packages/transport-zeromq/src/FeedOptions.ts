/** Settings of the charge event feed's two sides, and their defaults. */
import type { Duration } from "effect"
import type { SocketSettings } from "./SocketSettings.ts"

/** What both sides take. */
export interface FeedOptions {
  /** Where events are published (`tcp://127.0.0.1:5565`). The publisher binds; `>` in front makes it connect to a forwarder. */
  readonly endpoint?: string | ReadonlyArray<string> | undefined
  /** Where history and snapshots are asked for (`tcp://127.0.0.1:5566`). */
  readonly replayEndpoint?: string | ReadonlyArray<string> | undefined
  /** Lets addresses be used that other machines reach, without encryption. */
  readonly allowPlain?: boolean | undefined
  readonly socket?: Partial<SocketSettings> | undefined
}

/** What a publisher takes. */
export interface FeedPublisherOptions extends FeedOptions {
  /** How often the ledger is looked at when nothing happens (200 ms). */
  readonly poll?: Duration.Input | undefined
  /** How often subscribers hear that the publisher lives and what the last event was (1 second). */
  readonly aliveEvery?: Duration.Input | undefined
  /** Events that can be replayed; older ones are trimmed from the feed, never from the ledger. Default: all. */
  readonly keep?: number | undefined
  /** Events that are read from the log at once (1,000). */
  readonly pageMax?: number | undefined
}

/** What a subscriber takes. */
export interface FeedSubscriberOptions extends FeedOptions {
  /** Live events that wait for a slow reader (10,000). */
  readonly bufferMax?: number | undefined
  /** When they are more: fetch what was dropped and say so (`catch-up`, default), or fail with `SlowSubscriber`. */
  readonly whenSlow?: "catch-up" | "fail" | undefined
  /** When events that are owed were trimmed: fail with `ReplayGap` (default), or start anew from a snapshot and say so. */
  readonly whenGap?: "fail" | "snapshot" | undefined
  /** How long a page of history may take before it is asked for again (5 seconds). */
  readonly replayTimeout?: Duration.Input | undefined
  /** After how long without a word the publisher is called silent (3 seconds). */
  readonly silentAfter?: Duration.Input | undefined
  /** Events, or charges of a snapshot, that are asked for at once (1,000; 10,000 at the most). */
  readonly pageMax?: number | undefined
}

/** Where the feed is when nothing is configured. */
export const defaultFeedEndpoint = "tcp://127.0.0.1:5565"

/** Where its history is when nothing is configured. */
export const defaultReplayEndpoint = "tcp://127.0.0.1:5566"
