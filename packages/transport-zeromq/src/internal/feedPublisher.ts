/**
 * The publishing side of the feed: gives places to new events, publishes them in order, and answers for the past.
 *
 * Every life of a publisher is an epoch. It publishes what gets its place during its life; earlier events are history,
 * which readers ask for. A store that fails delays events and loses none: they keep their order and come later. When the log turns out to
 * have another history than was published, as after a failover that lost commits, another epoch begins, so that readers ask whether it knows their cursors.
 */
import { cursorAfter, cursorAt, EventLog, type FeedCursor, type FeedError, type TransportError } from "@purser/core"
import { Clock, Effect, type Scope } from "effect"
import { randomUUID } from "node:crypto"
import { defaultFeedEndpoint, defaultReplayEndpoint, type FeedPublisherOptions } from "../FeedOptions.ts"
import { openZmqSocket } from "../ZmqSocket.ts"
import { serveReplay } from "./feedReplay.ts"
import { inFrames, verbs, write } from "./feedWire.ts"
import { loadZeromq } from "./native.ts"
import { labelOf, millis, readEndpoints, settingsOf } from "./patternOptions.ts"

/** A publisher that is up. */
export interface FeedPublisher {
  /** As it is now: another one begins when the log turns out to have another history. */
  readonly epoch: string
  /** Addresses that were bound, for events and for history. */
  readonly bound: { readonly events: ReadonlyArray<string>; readonly replay: ReadonlyArray<string> }
  /** The last place that was published. */
  readonly published: Effect.Effect<number>
}

/** Events without a place that are taken in at once before a publisher is up. */
const historyMax = 10_000

/** After a failure of the store. */
const restMs = 1000

/** Publishes until the scope closes. Fails when the sockets cannot be opened or the log is not there at the start. */
export const makeFeedPublisher = Effect.fnUntraced(function*(
  options: FeedPublisherOptions
): Effect.fn.Return<FeedPublisher, FeedError | TransportError, EventLog | Scope.Scope> {
  const log = yield* EventLog
  const zmq = yield* loadZeromq
  const settings = settingsOf(options)
  const endpoints = yield* readEndpoints({ ...options, endpoint: options.endpoint ?? defaultFeedEndpoint }, "bind")
  const replayEndpoints = yield* readEndpoints({ ...options, endpoint: options.replayEndpoint ?? defaultReplayEndpoint }, "bind")
  const pollMs = millis(options.poll ?? 200)
  const aliveMs = millis(options.aliveEvery ?? "1 second")
  const pageMax = options.pageMax ?? 1000

  let epoch: string = randomUUID()
  yield* log.beginEpoch(epoch)
  let placed = 0
  // What has no place yet when this life begins is history for its readers too.
  for (let more = true; more;) {
    const head = yield* log.advance(historyMax)
    placed = head.sequence
    more = head.more
  }
  // What was published last, in this epoch.
  let cursor: FeedCursor = yield* cursorAt(log, placed)
  let saidAtMs = 0
  const replay = yield* serveReplay({ zmq, endpoints: replayEndpoints, settings, present: () => ({ ...cursor, epoch }) })
  // A publisher never waits for a subscriber: what does not fit is dropped, and the subscriber notices by the places.
  const socket = yield* openZmqSocket(zmq, { kind: "publisher", endpoints, settings, sendTimeoutMs: 0, lingerMs: settings.lingerMs })
  yield* Effect.annotateLogs(Effect.logDebug("publishing charge events"), { epoch, events: labelOf(endpoints), replay: labelOf(replayEndpoints), after: cursor.sequence })

  const say = (message: Parameters<typeof write>[0]) =>
    Effect.gen(function*() {
      saidAtMs = yield* Clock.currentTimeMillis
      yield* Effect.catch(socket.send(write(message)), (error) => Effect.logDebug("not published; readers fetch it", error.message))
    })
  const alive = Effect.suspend(() => say({ verb: verbs.alive, body: { v: 1, epoch, sequence: cursor.sequence } }))

  let trimmedTo = 0
  const beginAnew = Effect.gen(function*() {
    const next = randomUUID()
    yield* log.beginEpoch(next)
    const { sequence } = yield* log.head
    const at = yield* cursorAt(log, sequence)
    yield* Effect.logWarning("the event log has another history than was published, as after a restore or a failover that lost commits: a new epoch begins", { was: epoch, epoch: next, publishedTo: cursor.sequence, newest: sequence })
    epoch = next
    cursor = at
    trimmedTo = 0
    yield* alive
  })

  const publishTo = Effect.fnUntraced(function*(sequence: number) {
    if (sequence < cursor.sequence) return yield* beginAnew
    while (cursor.sequence < sequence) {
      const events = yield* log.read({ ...cursor, epoch }, Math.min(pageMax, sequence - cursor.sequence))
      for (const part of inFrames(events)) {
        yield* say({ verb: verbs.event, body: { v: 1, epoch, after: cursor.sequence, events: part } })
        cursor = cursorAfter(part[part.length - 1]!, null)
      }
    }
  }, Effect.catchIf((error) => error.reason._tag === "ReplayGap", ({ reason }) =>
    reason._tag === "ReplayGap" && reason.why === "other_history"
      ? beginAnew
      // Another publisher trimmed what this one had not sent. Readers learn of it when they ask.
      : Effect.asVoid(Effect.tap(log.head, (head) => Effect.sync(() => {
        if (head.trimmedTo > cursor.sequence) cursor = { epoch: null, sequence: head.trimmedTo }
      })))))

  const trim = Effect.fnUntraced(function*(keep: number, sequence: number) {
    // Not at every event: trimming is a write of its own.
    if (sequence - trimmedTo - keep < Math.max(1, Math.min(1000, keep / 10))) return
    trimmedTo = (yield* log.trim(keep)).trimmedTo
  })

  yield* Effect.gen(function*() {
    const { more, sequence } = yield* log.advance(pageMax)
    yield* publishTo(sequence)
    if (options.keep !== undefined) yield* trim(options.keep, sequence)
    if (!more) yield* Effect.sleep(pollMs)
  }).pipe(
    Effect.catch((error) => Effect.andThen(Effect.logWarning("the feed waits for the event log", error.message), Effect.sleep(restMs))),
    Effect.forever,
    Effect.forkScoped
  )
  yield* Effect.gen(function*() {
    const sinceMs = (yield* Clock.currentTimeMillis) - saidAtMs
    if (sinceMs >= aliveMs) yield* alive
    yield* Effect.sleep(Math.max(1, sinceMs >= aliveMs ? aliveMs : aliveMs - sinceMs))
  }).pipe(Effect.forever, Effect.forkScoped)

  return {
    get epoch() {
      return epoch
    },
    bound: { events: socket.bound, replay },
    published: Effect.sync(() => cursor.sequence)
  }
})
