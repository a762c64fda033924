/** A log that a test writes by hand, networks, relays that lose everything for a while, and reading a feed to a place. */
import { NodeServices } from "@effect/platform-node"
import { type ChargeKey, chargeKeyOf, EventLog, EventLogUnavailable, FeedError, type FeedEvent, type FeedNotice, type FeedStart, isAfter, ReplayGap, type TransportError } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { type FeedPublisherOptions, type FeedSubscriberOptions, ZmqEventFeed } from "@purser/transport-zeromq"
import { Effect, Exit, FileSystem, Queue, Scope, Stream } from "effect"
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { fileURLToPath } from "node:url"
import * as zmq from "zeromq"
import { freePort } from "./support.ts"

/** The event of a place, of one of ten charges. */
export const eventAt = (sequence: number): FeedEvent => {
  const request = chargeFor(`c_${sequence % 10}`, "2026-07")
  return {
    sequence, chargeKey: chargeKeyOf(request), chargeSequence: Math.floor(sequence / 10) + 1, atMs: 1_780_000_000_000 + sequence, from: "claimed", to: "attached",
    worker: "w", attempt: 1, detail: null, principal: sequence % 3 === 0 ? "alice" : null, namespace: request.namespace, customerId: request.customerId, billingPeriod: request.billingPeriod,
    item: null, amountMinor: 1000, currency: request.currency
  }
}

/** A log whose events are made up, with a detail of so many bytes, and whose store can go down, or be put back to what it was at a place. */
export const scriptedLog = (detailBytes = 0) => {
  const detail = detailBytes === 0 ? null : "x".repeat(detailBytes)
  const epochs = new Set<string>()
  const state = { last: 0, placed: 0, trimmedTo: 0, isDown: false, putBackTo: Infinity, timesPutBack: 0 }
  // What happens after it was put back are the same steps again, at another time.
  const at = (sequence: number) => ({ ...eventAt(sequence), detail, ...(sequence > state.putBackTo ? { atMs: eventAt(sequence).atMs + 60_000 * state.timesPutBack } : {}) })
  const up = <A>(effect: Effect.Effect<A, FeedError>) =>
    Effect.suspend(() => state.isDown ? Effect.fail(new FeedError({ reason: new EventLogUnavailable({ operation: "test", detail: "down" }) })) : effect)
  const head = () => ({ sequence: state.placed, trimmedTo: state.trimmedTo })
  const log = EventLog.of({
    beginEpoch: (epoch) => up(Effect.sync(() => void epochs.add(epoch))),
    head: up(Effect.sync(head)),
    advance: (limit) =>
      up(Effect.sync(() => {
        state.placed = Math.min(state.last, state.placed + limit)
        return { ...head(), more: state.placed < state.last }
      })),
    read: (cursor, limit) =>
      up(Effect.suspend(() => {
        const { epoch, sequence } = cursor
        const stands = sequence > state.trimmedTo && sequence <= state.placed ? at(sequence) : undefined
        const known = (epoch === null || epochs.has(epoch)) && (stands === undefined || isAfter(cursor, stands))
        if (!known || sequence < state.trimmedTo || sequence > state.placed) {
          const why = known && sequence < state.trimmedTo ? "trimmed" : "other_history"
          return Effect.fail(new FeedError({ reason: new ReplayGap({ after: sequence, oldest: state.trimmedTo + 1, newest: state.placed, why }) }))
        }
        return Effect.succeed(Array.from({ length: Math.min(limit, state.placed - sequence) }, (_, index) => at(sequence + index + 1)))
      })),
    snapshot: (at, afterKey, limit) =>
      up(Effect.sync(() => {
        const last = new Map<ChargeKey, FeedEvent>()
        for (let sequence = Math.max(1, at - 9); sequence <= at; sequence++) last.set(eventAt(sequence).chargeKey, eventAt(sequence))
        const keys = [...last.keys()].filter((key) => afterKey === null || key > afterKey).sort()
        return { states: keys.slice(0, limit).map((key) => last.get(key)!), next: keys.length > limit ? keys[limit - 1]! : null }
      })),
    trim: (keep) =>
      up(Effect.sync(() => {
        state.trimmedTo = Math.max(state.trimmedTo, state.placed - keep)
        return head()
      }))
  })
  return {
    log,
    state,
    epochs,
    append: (count: number) => Effect.sync(() => void (state.last += count)),
    /** Forgets what came after a place, and has some more instead, before anybody looks. Epochs are known as before. */
    putBack: (to: number, more: number) => Effect.sync(() => void Object.assign(state, { last: to + more, placed: to + more, putBackTo: to, timesPutBack: state.timesPutBack + 1 }))
  }
}

/** Two free addresses of each network. */
export const networks: Record<string, Effect.Effect<{ readonly endpoint: string; readonly replayEndpoint: string }, unknown, Scope.Scope>> = {
  inproc: Effect.sync(() => ({ endpoint: `inproc://${randomUUID()}`, replayEndpoint: `inproc://${randomUUID()}` })),
  ipc: Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const folder = yield* fs.makeTempDirectoryScoped({ prefix: "purser-" })
    return { endpoint: `ipc://${folder}/feed.sock`, replayEndpoint: `ipc://${folder}/replay.sock` }
  }).pipe(Effect.provide(NodeServices.layer)),
  tcp: Effect.gen(function*() {
    return { endpoint: `tcp://127.0.0.1:${yield* freePort}`, replayEndpoint: `tcp://127.0.0.1:${yield* freePort}` }
  })
}

/** Quick settings for both sides; no test depends on how quick. */
export const quick = { poll: "5 millis", aliveEvery: "20 millis", replayTimeout: "300 millis", socket: { reconnectMs: 10, reconnectMaxMs: 50 } } as const

/** Publishes until the returned scope is closed, or the test ends. */
export const publishOn = Effect.fnUntraced(function*(log: EventLog["Service"], options: FeedPublisherOptions) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  const publisher = yield* ZmqEventFeed.publish({ ...quick, ...options }).pipe(Effect.provideService(EventLog, log), Scope.provide(scope))
  return { publisher, close: Scope.close(scope, Exit.void) }
})

/** A reader whose notices a test takes one by one. */
export interface Reader {
  readonly next: Effect.Effect<FeedNotice, FeedError | TransportError>
  /** Takes events until that of a place; all events must follow each other without a hole. Gives what was said beside them. */
  readonly readTo: (sequence: number) => Effect.Effect<ReadonlyArray<FeedNotice>, FeedError | TransportError>
  /** Takes notices until one of a kind. */
  readonly until: <T extends FeedNotice["_tag"]>(tag: T) => Effect.Effect<Extract<FeedNotice, { readonly _tag: T }>, FeedError | TransportError>
  readonly last: () => number
  readonly close: Effect.Effect<void>
}

/** Follows a feed; the reader takes a notice only when the test does. */
export const readOn = Effect.fnUntraced(function*(start: FeedStart, options: FeedSubscriberOptions) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  const pull = yield* Stream.toPull(ZmqEventFeed.follow(start, { ...quick, ...options }).pipe(Stream.rechunk(1))).pipe(Scope.provide(scope))
  let last = start._tag === "After" ? start.cursor.sequence : 0
  const next = Effect.map(pull, ([notice]) => {
    if (notice._tag === "Synced" && last === 0) last = notice.cursor.sequence
    if (notice._tag === "Restarted") last = 0
    if (notice._tag === "Event") {
      if (start._tag !== "Beginning" && last === 0 || notice.event.sequence === last + 1) last = notice.event.sequence
      else throw new Error(`event ${notice.event.sequence} after ${last}`)
    }
    return notice
  }).pipe(Effect.catch((error) => typeof error === "object" && error !== null && "reason" in error ? Effect.fail(error as FeedError | TransportError) : Effect.die("the feed ended")))
  const reader: Reader = {
    next,
    last: () => last,
    readTo: Effect.fnUntraced(function*(sequence) {
      const said: Array<FeedNotice> = []
      for (;;) {
        if (last >= sequence) return said
        const notice = yield* next
        if (notice._tag !== "Event" && notice._tag !== "Silent") said.push(notice)
      }
    }),
    until: <T extends FeedNotice["_tag"]>(tag: T) =>
      Effect.gen(function*() {
        for (;;) {
          const notice = yield* next
          if (notice._tag === tag) return notice as Extract<FeedNotice, { readonly _tag: T }>
        }
      }),
    close: Scope.close(scope, Exit.void)
  }
  return reader
})

/** Passes events on from a publisher to subscribers, except while `lose` is set. */
export const lossyRelay = Effect.fnUntraced(function*(from: string, to: string) {
  const control = { lose: false, lost: 0 }
  const sub = yield* Effect.acquireRelease(Effect.sync(() => new zmq.Subscriber({ linger: 0 })), (socket) => Effect.sync(() => socket.close()))
  const pub = yield* Effect.acquireRelease(Effect.sync(() => new zmq.Publisher({ linger: 0 })), (socket) => Effect.sync(() => socket.close()))
  sub.subscribe("")
  sub.connect(from)
  yield* Effect.promise(() => pub.bind(to))
  const passed = yield* Queue.unbounded<ReadonlyArray<Buffer>>()
  yield* Effect.forkScoped(Effect.ignore(Effect.forever(Effect.flatMap(Effect.tryPromise(() => sub.receive()), (frames) => Queue.offer(passed, frames)))))
  yield* Effect.forkScoped(Effect.forever(Effect.flatMap(Queue.take(passed), (frames) => {
    if (!control.lose) return Effect.promise(() => pub.send([...frames]))
    control.lost++
    return Effect.void
  })))
  return control
})

/** A reader as a process of its own, which prints a line for each notice. */
export const readerProcess = Effect.fnUntraced(function*(at: { readonly endpoint: string; readonly replayEndpoint: string }) {
  const lines = yield* Queue.unbounded<string>()
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, [fileURLToPath(new URL("programs/feedReader.ts", import.meta.url)), at.endpoint, at.replayEndpoint], { stdio: ["ignore", "pipe", "inherit"] })),
    (child) => Effect.sync(() => void child.kill("SIGKILL"))
  )
  let rest = ""
  child.stdout.on("data", (data: Buffer) => {
    const parts = (rest + data.toString("utf8")).split("\n")
    rest = parts.pop()!
    Queue.offerAllUnsafe(lines, parts)
  })
  return {
    signal: (signal: NodeJS.Signals) => Effect.sync(() => void child.kill(signal)),
    /** Takes lines up to the one that is wanted. */
    until: (wanted: (line: string) => boolean) =>
      Effect.gen(function*() {
        const taken: Array<string> = []
        for (;;) {
          const line = yield* Queue.take(lines)
          taken.push(line)
          if (wanted(line)) return taken
        }
      })
  }
})
