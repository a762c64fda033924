/**
 * A subscriber's way through the feed. It knows one thing for certain: the place of the last event that it gave. Whatever
 * does not follow that place, for whichever reason (late, lost, dropped, another life of the publisher), is fetched from
 * there; whatever is not after it is left out. So a reader gets each event once and in order, or a typed error.
 */
import {
  type ChargeKey, cursorAfter, type FeedCursor, FeedError, type FeedEvent, type FeedNotice, type FeedStart, SlowSubscriber, type TransportError
} from "@purser/core"
import { Clock, Effect } from "effect"
import type { AskPage, Page } from "./feedAsk.ts"
import type { Live } from "./feedLive.ts"

/** Limits of a subscriber. */
export interface FollowOptions {
  readonly live: Live
  readonly ask: AskPage
  readonly start: FeedStart
  readonly pageMax: number
  readonly bufferMax: number
  readonly silentMs: number
  readonly whenSlow: "catch-up" | "fail"
  readonly whenGap: "fail" | "snapshot"
}

type Step = Effect.Effect<ReadonlyArray<FeedNotice>, FeedError | TransportError>

/** Makes the step that gives the next notices; it may give none. */
export const makeFollow = (options: FollowOptions): Step => {
  const { ask, bufferMax, live, pageMax, silentMs } = options
  let cursor: FeedCursor = options.start._tag === "After" ? options.start.cursor : { epoch: null, sequence: 0 }
  let start: "snapshot" | "head" | "none" = options.start._tag === "Snapshot" ? "snapshot" : options.start._tag === "Now" ? "head" : "none"
  let snapshot: { readonly at: number | null; readonly key: ChargeKey | null } = { at: null, key: null }
  /** The snapshot's first page. Its cursor counts: when another publisher gave a later one, that is asked whether it knows it. */
  let first: Page | undefined
  /** Whether the publisher of this epoch knows our cursor: asked once for each epoch. */
  let agreedWith: string | null = null
  let synced = start !== "none"
  /** Whether it has been level with the publisher: what is missing before that is no loss. */
  let level = false
  let laggedTo = 0
  /** The publisher's place as the last page told it. */
  let ahead = 0
  let toldSilent = false
  let renewedAtMs = 0

  const synchronized = (): ReadonlyArray<FeedNotice> => {
    synced = true
    return [{ _tag: "Synced", cursor }]
  }
  const beginAt = ({ epoch, event, sequence }: Page): ReadonlyArray<FeedNotice> => {
    start = "none"
    cursor = { epoch, sequence, ...(event === undefined ? {} : { event }) }
    ahead = sequence
    agreedWith = epoch
    // What overflowed meanwhile was not due yet.
    live.overrun = false
    return synchronized()
  }
  const agree = (epoch: string): ReadonlyArray<FeedNotice> => {
    const isNew = agreedWith !== null && agreedWith !== epoch
    agreedWith = epoch
    cursor = { ...cursor, epoch }
    return isNew ? [{ _tag: "Epoch", epoch }] : []
  }
  const give = (events: ReadonlyArray<FeedEvent>): ReadonlyArray<FeedNotice> => {
    if (events.length > 0) cursor = cursorAfter(events[events.length - 1]!, cursor.epoch)
    return events.map((event) => ({ _tag: "Event", event, epoch: cursor.epoch }))
  }

  const silence: Step = Effect.gen(function*() {
    const nowMs = yield* Clock.currentTimeMillis
    const quietMs = nowMs - live.heardAtMs
    if (quietMs < silentMs) {
      toldSilent = false
      return []
    }
    if (nowMs - renewedAtMs >= silentMs) {
      renewedAtMs = nowMs
      yield* live.renew
    }
    if (toldSilent) return []
    toldSilent = true
    const notice: FeedNotice = { _tag: "Silent", silentMs: quietMs }
    return [notice]
  })

  const takeSnapshot: Step = Effect.gen(function*() {
    const page = yield* ask({ snapshot }, pageMax)
    if (page === undefined) return yield* silence
    const states = page.events.map((event): FeedNotice => ({ _tag: "State", event }))
    snapshot = { at: page.sequence, key: page.next }
    first ??= page
    if (page.next !== null) return states
    return [...states, ...beginAt(first)]
  })

  const takeHead: Step = Effect.gen(function*() {
    const page = yield* ask({ head: true }, 1)
    if (page === undefined) return yield* silence
    return beginAt(page)
  })

  const replay: Step = Effect.gen(function*() {
    const page = yield* ask({ after: cursor }, pageMax)
    if (page === undefined) return yield* silence
    const told = agree(page.epoch)
    ahead = page.sequence
    const events = give(page.events)
    const done = !synced && cursor.sequence >= page.sequence ? synchronized() : []
    return [...told, ...events, ...done]
  }).pipe(Effect.catchTag("FeedError", (error): Step => {
    const { reason } = error
    // A store that is down comes back; what was owed and is gone does not.
    if (reason._tag === "EventLogUnavailable") return Effect.andThen(Effect.sleep(Math.min(1000, silentMs)), silence)
    if (reason._tag !== "ReplayGap" || options.whenGap === "fail") return Effect.fail(error)
    start = "snapshot"
    snapshot = { at: null, key: null }
    first = undefined
    level = false
    const notice: FeedNotice = { _tag: "Restarted", after: cursor.sequence, why: reason.why }
    return Effect.succeed([notice])
  }))

  const missing = (reason: "lost" | "overrun", to: number): ReadonlyArray<FeedNotice> => {
    if (!level || to <= laggedTo) return []
    const after = Math.max(cursor.sequence, laggedTo)
    laggedTo = to
    return [{ _tag: "Lagged", reason, after, to }]
  }

  return Effect.gen(function*() {
    if (start === "snapshot") return yield* takeSnapshot
    if (start === "head") return yield* takeHead
    live.news.closeUnsafe()
    if (agreedWith === null || (live.epoch !== null && live.epoch !== agreedWith)) {
      level = false
      return yield* replay
    }
    const waiting = live.buffer.filter(({ sequence }) => sequence > cursor.sequence)
    const overrun = live.overrun
    live.overrun = false
    if (overrun && level && options.whenSlow === "fail") {
      return yield* new FeedError({ reason: new SlowSubscriber({ epoch: cursor.epoch, sequence: cursor.sequence, missed: (waiting[0]?.sequence ?? live.head + 1) - cursor.sequence - 1, bufferMax }) })
    }
    if (waiting.length > 0 && waiting[0]!.sequence === cursor.sequence + 1) {
      live.buffer = []
      level = true
      return give(waiting)
    }
    const head = Math.max(live.head, ahead)
    if (head > cursor.sequence) {
      const told = missing(overrun ? "overrun" : "lost", waiting[0] === undefined ? head : waiting[0].sequence - 1)
      return [...told, ...(yield* replay)]
    }
    level = true
    yield* Effect.timeoutOption(live.news.await, silentMs)
    return yield* silence
  })
}
