/**
 * Many requests in flight over one socket: a window of them, joined frames, answers in any order.
 *
 * Answers are matched by the request's id at the socket that hears them; what matches nothing is counted and dropped. A
 * request without an answer at its deadline is sent again until its schedule ends, always under the same id. The window
 * is the credit: libzmq's high-water mark is none, because the kernel's buffers hold more.
 *
 * What happens for each request is plain callbacks and one entry in a map; fibers are for frames and for time. A fiber, a
 * span or a queue for each request would cost several times what the socket does.
 */
import { Backpressure, Closed, type TransportErrorReason, TransportError, Unauthorized } from "@purser/core"
import { Clock, Effect, Latch, Metric, Result, type Schedule, type Scope } from "effect"
import type { Frames } from "../ZmqSocket.ts"
import { ZmqMetrics } from "../ZmqMetrics.ts"
import type { Addresses } from "./addresses.ts"
import { type Carrier, makeCarriers, type OpenCarrier, type SentRequest } from "./carrier.ts"
import { makePlaces } from "./ids.ts"
import { makeLine } from "./line.ts"
import { Caller, Errand, type ReplyOf, restErrand } from "./errand.ts"

/** How a window's requests and answers are written. No function throws. */
export interface ClientWire<Req, A, E> {
  readonly encodeRequests: (
    client: string,
    items: ReadonlyArray<SentRequest<Req>>
  ) => string
  /** A socket with one frame on its way says what it has asked: an answer may leave out what it belongs to. */
  readonly decodeReplies: (
    text: string,
    questions?: ReadonlyArray<{ readonly id: string; readonly request: Req }>
  ) => Result.Result<ReadonlyArray<AnswerOf<A, E>>, TransportError>
}

/** An answer, and whose. */
export interface AnswerOf<A, E> {
  readonly id: string
  readonly reply: ReplyOf<A, E>
}

/** Limits of a window, and what it needs to speak. */
export interface WindowClientSettings<Req, A, E> {
  readonly wire: ClientWire<Req, A, E>
  readonly label: string
  readonly addresses: Addresses
  readonly open: OpenCarrier<Req, AnswerOf<A, E>>
  readonly timeoutMs: number
  readonly retry: Schedule.Schedule<unknown, unknown>
  readonly window: number
  readonly whenFull: "wait" | "fail"
  readonly joinMax: number
  /** After so many deadlines in silence the sockets are renewed; undefined: never. */
  readonly silencesMax: number | undefined
  /** What errors of the transport call a request. */
  readonly keyOf: (request: Req) => string | null
  /** Whether an answer that names a request's id speaks of that request at all; one that does not is a stray one. Default: it does. */
  readonly fits?: ((request: Req, reply: ReplyOf<A, E>) => boolean) | undefined
  /** How long a request's text is, where requests may be long: a frame of several takes no more than `joinChars`. */
  readonly sizeOf?: ((request: Req) => number) | undefined
}

/** Sends requests and waits for their answers; `traceparent` names the span in which they are asked. */
export interface WindowClient<Req, A, E> {
  readonly submit: (request: Req, traceparent: string | undefined) => Effect.Effect<A, E | TransportError>
  /** A result for each, in order. `write` makes a request of each when its turn has come, or says why it is none. */
  readonly submitAll: <From>(
    from: ReadonlyArray<From>,
    write: (one: From) => Result.Result<Req, TransportError>,
    traceparent: string | undefined
  ) => Effect.Effect<ReadonlyArray<ReplyOf<A, E>>>
}

/** Many that were submitted together and wait for room; each is made when its turn has come. */
interface Crowd<Entry> {
  readonly next: () => Entry | undefined
}

const silenceMaxMs = 60_000

/** UTF-16 units, each three bytes at the most: with the envelopes they fit into a request's limit. */
export const joinChars = 256 * 1024

/** How many requests from a place on leave in one frame. */
export const joinable = <Req>(
  waiting: ReadonlyArray<{ readonly request: Req }>,
  at: number,
  joinMax: number,
  sizeOf: ((request: Req) => number) | undefined
): number => {
  const most = Math.min(joinMax, waiting.length - at)
  if (sizeOf === undefined) return most
  let chars = 0
  for (let length = 0; length < most; length++) {
    chars += sizeOf(waiting[at + length]!.request)
    if (chars > joinChars && length > 0) return length
  }
  return most
}

/** Makes a window; its socket is opened when it is first needed, and closed with the scope. */
export const makeWindowClient = <Req, A, E>(settings: WindowClientSettings<Req, A, E>): Effect.Effect<WindowClient<Req, A, E>, never, Scope.Scope> =>
  Effect.gen(function*() {
    type Entry = Errand<Req, A, E>
    const { keyOf, label, timeoutMs, window, wire } = settings
    const clock = yield* Clock.Clock
    const run = Effect.runForkWith(yield* Effect.context<never>())
    const errands = makePlaces<Entry>(window)
    /** Beyond the window, in the order in which they came. */
    const queued = makeLine<Entry | Crowd<Entry>>()
    /** The first of the line, while there is more of it. */
    let crowd: Crowd<Entry> | undefined
    let waiting: Array<Entry> = []
    const toSend = yield* Latch.make(false)
    const busy = yield* Latch.make(false)
    let isClosed = false
    /** Since when something was sent and nothing heard. */
    let silentSinceMs: number | undefined
    /** How long silence lasts until the sockets are renewed. It doubles: peers that are slow, not gone, need the connection that is there. */
    let silenceMs = (settings.silencesMax ?? 0) * timeoutMs

    const wait = (errand: Entry) => {
      errand.phase = "waiting"
      errand.dueMs = clock.currentTimeMillisUnsafe() + timeoutMs
      if (errand.listed) return
      errand.listed = true
      if (waiting.push(errand) === 1) toSend.openUnsafe()
    }
    const admit = (errand: Entry) => {
      if (errands.size() === 0) busy.openUnsafe()
      errands.put(errand)
      wait(errand)
    }
    const takeQueued = (): Entry | undefined => {
      for (;;) {
        const one = crowd?.next()
        if (one !== undefined) return one
        crowd = undefined
        const first = queued.take()
        if (first === undefined) return undefined
        // Those that were given up while they waited stay in the line until it is their turn.
        if ("next" in first) crowd = first
        else if (first.phase !== "over") return first
      }
    }
    const leave = (errand: Entry) => {
      errand.phase = "over"
      if (!errands.remove(errand) || isClosed) return
      const next = takeQueued()
      if (next !== undefined) admit(next)
    }
    const settle = (errand: Entry, reply: ReplyOf<A, E>) => {
      if (errand.phase === "over") return
      leave(errand)
      errand.asker.done(reply, errand.index)
    }
    const fail = (errand: Entry, reason: TransportErrorReason) =>
      settle(errand, Result.fail(new TransportError({ reason, chargeKey: keyOf(errand.request) })))

    const closed = new Closed({ endpoint: label, detail: "the client has been closed" })
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        isClosed = true
        for (const errand of errands.all()) fail(errand, closed)
        for (let errand = takeQueued(); errand !== undefined; errand = takeQueued()) fail(errand, closed)
      }))

    const rest = (errand: Entry) => restErrand(errand, settings.retry, clock.currentTimeMillisUnsafe(), label, (reason) => fail(errand, reason))
    const stray = Metric.update(ZmqMetrics.strayReplies, 1)
    const answered = (answers: ReadonlyArray<AnswerOf<A, E>>): void => {
      silentSinceMs = undefined
      silenceMs = (settings.silencesMax ?? 0) * timeoutMs
      for (const { id, reply } of answers) {
        const errand = errands.get(id)
        if (errand === undefined || settings.fits?.(errand.request, reply) === false) run(stray)
        else if (Result.isFailure(reply) && reply.failure instanceof TransportError && reply.failure.isRetryable) {
          errand.refusals = [...errand.refusals, reply.failure]
          if (errand.phase === "sent") run(rest(errand))
        } else settle(errand, reply)
      }
    }
    const receive = (frames: Frames): void => {
      // A server may answer under the empty delimiter of a REQ peer.
      const body = frames.length === 2 && frames[0]!.length === 0 ? frames[1]! : frames[0]!
      const replies = wire.decodeReplies(body.toString("utf8"))
      if (Result.isSuccess(replies)) return answered(replies.success)
      answered([])
      run(Effect.andThen(stray, Effect.logWarning("a reply cannot be read", replies.failure.message)))
    }
    const refused = (carrier: Carrier<Req>, detail: string): void => {
      silentSinceMs = undefined
      const refusal = new TransportError({ reason: new Unauthorized({ detail }), chargeKey: null })
      for (const errand of errands.all()) {
        if (errand.phase !== "sent" || errand.sentBy !== carrier) continue
        // Tried again as its schedule says: the operator may let the key in.
        errand.refusals = [...errand.refusals, refusal]
        run(rest(errand))
      }
    }
    const carriers = yield* makeCarriers(settings.addresses, settings.open, { frames: receive, answers: answered }, refused)

    const sendFrame = Effect.fnUntraced(function*(some: ReadonlyArray<Entry>) {
      const carrier = yield* carriers.current
      // Some may have ended while there was no server.
      const frame = some.filter(({ phase }) => phase === "waiting")
      if (frame.length === 0) return
      const nowMs = clock.currentTimeMillisUnsafe()
      for (const errand of frame) {
        errand.phase = "sent"
        errand.sentBy = carrier
        errand.deadlineMs = Math.max(1, errand.dueMs - nowMs)
      }
      silentSinceMs ??= nowMs
      yield* carrier.send(wire.encodeRequests(carrier.client, frame), frame)
    }, Effect.catch((error) => Effect.logDebug("a frame was not sent; its requests have a deadline", error.message)))
    yield* toSend.await.pipe(
      // A turn for others that are about to be submitted: they go along.
      Effect.andThen(Effect.yieldNow),
      Effect.andThen(Effect.gen(function*() {
        const taken = waiting
        waiting = []
        for (const errand of taken) errand.listed = false
        toSend.closeUnsafe()
        for (let at = 0; at < taken.length;) {
          const length = joinable(taken, at, settings.joinMax, settings.sizeOf)
          yield* sendFrame(taken.slice(at, at += length))
        }
      })),
      Effect.forever,
      Effect.forkScoped
    )

    const sweep = Effect.gen(function*() {
      const nowMs = clock.currentTimeMillisUnsafe()
      let expired = 0
      for (const errand of errands.all()) {
        if (errand.dueMs > nowMs) continue
        if (errand.phase === "resting") {
          errand.attempts++
          yield* Metric.update(ZmqMetrics.resentRequests, 1)
          wait(errand)
        } else {
          expired++
          yield* Metric.update(ZmqMetrics.timeouts, 1)
          yield* rest(errand)
        }
      }
      if (expired === 0) return
      if (settings.silencesMax === undefined || silentSinceMs === undefined || nowMs - silentSinceMs < silenceMs) return
      silentSinceMs = undefined
      silenceMs = Math.min(2 * silenceMs, silenceMaxMs)
      yield* Metric.update(ZmqMetrics.renewedSockets, 1)
      yield* Effect.logDebug("nothing was heard: the socket is renewed")
      yield* carriers.renew
    })
    // One fiber for all deadlines: a timer for each request would cost more than the request.
    yield* Effect.sleep(Math.min(100, Math.max(1, timeoutMs / 10))).pipe(
      Effect.andThen(sweep),
      Effect.andThen(Effect.sync(() => { if (errands.size() === 0) busy.closeUnsafe() })),
      (turn) => Effect.andThen(busy.await, turn),
      Effect.forever,
      Effect.forkScoped
    )

    const begin = (errand: Entry): Entry => {
      if (isClosed) fail(errand, closed)
      else if (errands.size() < window) admit(errand)
      else if (settings.whenFull === "fail") fail(errand, new Backpressure({ endpoint: label, window }))
      else queued.add(errand)
      return errand
    }
    const abandon = (errand: Entry) => {
      if (errand.phase !== "over") leave(errand)
    }

    return {
      submit: (request, traceparent) =>
        Effect.callback((resume) => {
          const errand = begin(new Errand(request, traceparent, new Caller(resume)))
          return Effect.sync(() => abandon(errand))
        }),
      submitAll: (from, write, traceparent) =>
        Effect.callback((resume) => {
          const replies = Array.from<ReplyOf<A, E>>({ length: from.length })
          let left = from.length
          if (left === 0) return resume(Effect.succeed(replies))
          const done = (reply: ReplyOf<A, E>, index: number) => {
            replies[index] = reply
            if (--left === 0) resume(Effect.succeed(replies))
          }
          const asker = { done }
          let at = 0
          // Made one by one as the window takes them in: what is made before its time outlives many collections of garbage.
          const next = (): Entry | undefined => {
            while (at < from.length) {
              const index = at++
              const request = write(from[index]!)
              if (Result.isSuccess(request)) return new Errand(request.success, traceparent, asker, index)
              done(Result.fail(request.failure), index)
            }
            return undefined
          }
          if (isClosed || settings.whenFull === "fail") for (let one = next(); one !== undefined; one = next()) begin(one)
          else {
            queued.add({ next })
            while (errands.size() < window) {
              const one = takeQueued()
              if (one === undefined) break
              admit(one)
            }
          }
          return Effect.sync(() => {
            at = from.length
            for (const errand of errands.all()) if (errand.asker === asker) abandon(errand)
          })
        })
    }
  })
