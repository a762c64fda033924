/**
 * The charge event feed read from the ledger's own store, without a publisher: for programs that have the database at hand.
 *
 * It looks for new events now and then and gives them their places itself, as a publisher does, so that it works beside
 * one and without one. Nothing is pushed here, so that a slow reader costs nothing and is never behind without knowing.
 */
import { type ChargeKey, cursorAfter, cursorAt, EventFeed, EventLog, type FeedCursor, type FeedError, type FeedNotice, type FeedStart } from "@purser/core"
import { Array as Arr, Config, Duration, Effect, Layer, Stream } from "effect"
import { boundedInt } from "./internal/boundedInt.ts"

const options = Config.all({
  poll: Config.Duration("PURSER_FEED_POLL").pipe(Config.withDefault(Duration.millis(200))),
  pageMax: boundedInt("PURSER_FEED_PAGE", { minimum: 1, maximum: 10_000, default: 1000 })
})

/** A reader's way through the log: each call gives the next notices, perhaps none after a rest. */
const makeStep = (log: EventLog["Service"], start: FeedStart, limits: { readonly poll: Duration.Duration; readonly pageMax: number }) => {
  const { pageMax, poll } = limits
  let cursor: FeedCursor = start._tag === "After" ? start.cursor : { epoch: null, sequence: 0 }
  let snapshot: { readonly at: number; readonly key: ChargeKey | null } | undefined
  let phase: "place" | "snapshot" | "events" = start._tag === "Snapshot" || start._tag === "Now" ? "place" : "events"
  let synced = false

  const advance = Effect.gen(function*() {
    for (;;) {
      const head = yield* log.advance(pageMax)
      if (!head.more) return head.sequence
    }
  })
  const synchronized = (): FeedNotice => {
    synced = true
    return { _tag: "Synced", cursor }
  }

  return Effect.gen(function*(): Effect.fn.Return<ReadonlyArray<FeedNotice>, FeedError> {
    if (phase === "place") {
      cursor = yield* cursorAt(log, yield* advance)
      phase = start._tag === "Now" ? "events" : "snapshot"
      snapshot = { at: cursor.sequence, key: null }
      return start._tag === "Now" ? [synchronized()] : []
    }
    if (phase === "snapshot" && snapshot !== undefined) {
      const { next, states } = yield* log.snapshot(snapshot.at, snapshot.key, pageMax)
      snapshot = { at: snapshot.at, key: next }
      if (next === null) phase = "events"
      return [...states.map((event): FeedNotice => ({ _tag: "State", event })), ...(next === null ? [synchronized()] : [])]
    }
    yield* advance
    const events = yield* log.read(cursor, pageMax)
    if (events.length === 0) {
      if (!synced) return [synchronized()]
      yield* Effect.sleep(poll)
      return []
    }
    cursor = cursorAfter(events[events.length - 1]!, cursor.epoch)
    return events.map((event): FeedNotice => ({ _tag: "Event", event, epoch: cursor.epoch }))
  })
}

/** The feed as a layer over the event log. */
export const ChargeEventFeed: {
  /** Looks every `PURSER_FEED_POLL` (200 ms), `PURSER_FEED_PAGE` (1,000) events at a time. */
  readonly layer: Layer.Layer<EventFeed, Config.ConfigError, EventLog>
} = {
  layer: Layer.effect(
    EventFeed,
    Effect.gen(function*() {
      const log = yield* EventLog
      const limits = yield* options
      return EventFeed.of({
        follow: (start) =>
          Stream.unwrap(Effect.sync(() =>
            Stream.fromEffectRepeat(makeStep(log, start, limits)).pipe(Stream.filter(Arr.isReadonlyArrayNonEmpty), Stream.flattenArray)))
      })
    })
  )
}
