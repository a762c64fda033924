/** What goes wrong with a charge event feed. It is about reading alone: no charge is touched by any of these. */
import { Schema } from "effect"

const id = (name: string) => `@purser/core/FeedError/${name}`

/** The store of events did not answer, or answered with an error of its own. */
export class EventLogUnavailable extends Schema.TaggedError<EventLogUnavailable>(id("EventLogUnavailable"))("EventLogUnavailable", {
  operation: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `the event log is unavailable for ${this.operation}: ${this.detail}`
  }
  get isRetryable() {
    return true
  }
}

/**
 * The events after a cursor are not there: they were trimmed, or the cursor is of another history. `oldest` is the first
 * place that can still be read, `newest` the last one. A reader starts anew from a snapshot.
 */
export class ReplayGap extends Schema.TaggedError<ReplayGap>(id("ReplayGap"))("ReplayGap", {
  after: Schema.Int,
  oldest: Schema.Int,
  newest: Schema.Int,
  why: Schema.Literals(["trimmed", "other_history"])
}) {
  override get message() {
    const why = this.why === "trimmed" ? "were trimmed" : "belong to another history"
    return `the events after ${this.after} ${why}: ${this.oldest} to ${this.newest} can be read; start anew from a snapshot`
  }
  get isRetryable() {
    return false
  }
}

/** The reader was slower than the feed and its buffer overflowed; it has everything up to `sequence` and can go on from there. */
export class SlowSubscriber extends Schema.TaggedError<SlowSubscriber>(id("SlowSubscriber"))("SlowSubscriber", {
  epoch: Schema.NullOr(Schema.String),
  sequence: Schema.Int,
  missed: Schema.Int,
  bufferMax: Schema.Int
}) {
  override get message() {
    return `the reader is too slow: ${this.missed} events did not fit into its buffer of ${this.bufferMax}; it can go on after ${this.sequence}`
  }
  get isRetryable() {
    return true
  }
}

/** A message that is none of the feed's, or that the publisher refuses. */
export class FeedRefused extends Schema.TaggedError<FeedRefused>(id("FeedRefused"))("FeedRefused", { detail: Schema.String }) {
  override get message() {
    return `the feed refuses: ${this.detail}`
  }
  get isRetryable() {
    return false
  }
}

/** Everything that reading a feed can fail with. */
export const FeedErrorReason = Schema.Union([EventLogUnavailable, ReplayGap, SlowSubscriber, FeedRefused])
export type FeedErrorReason = typeof FeedErrorReason.Type

/** A feed could not be read. */
export class FeedError extends Schema.TaggedError<FeedError>("@purser/core/FeedError")("FeedError", { reason: FeedErrorReason }) {
  override get message() {
    return this.reason.message
  }
  get isRetryable() {
    return this.reason.isRetryable
  }
}
