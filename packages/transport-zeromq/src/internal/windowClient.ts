/**
 * Many requests in flight over one socket: a window of them, joined frames, answers in any order.
 *
 * Answers are matched by the request's id at the socket that hears them; what matches nothing is counted and dropped. A
 * request without an answer at its deadline is sent again until its schedule ends, always under the same id. The window
 * is the credit: libzmq's high-water mark is none, because the kernel's buffers hold more.
 */
import { Backpressure, type ChargeOutcome, type ChargeRequest, Closed, type SubmitError, TransportError, type WireCodec } from "@purser/core"
import { Clock, Deferred, Effect, Latch, Metric, Queue, Result, type Schedule, type Scope, Semaphore } from "effect"
import { randomUUID } from "node:crypto"
import type { Frames } from "../ZmqSocket.ts"
import { ZmqMetrics } from "../ZmqMetrics.ts"
import type { Addresses } from "./addresses.ts"
import { makeCarriers, type OpenCarrier } from "./carrier.ts"
import { type Errand, failErrand, makeErrand, restErrand, takeReply } from "./errand.ts"

/** Limits of a window, and what it needs to speak. */
export interface WindowClientSettings {
  readonly wire: WireCodec
  readonly label: string
  readonly addresses: Addresses
  readonly open: OpenCarrier
  readonly timeoutMs: number
  readonly retry: Schedule.Schedule<unknown, unknown>
  readonly window: number
  readonly whenFull: "wait" | "fail"
  readonly joinMax: number
  /** After so many deadlines in silence the sockets are renewed; undefined: never. */
  readonly silencesMax: number | undefined
}

/** Submits one request and waits for its answer. */
export interface WindowClient {
  readonly submit: (request: ChargeRequest) => Effect.Effect<ChargeOutcome, SubmitError>
}

const silenceMaxMs = 60_000

/** Makes a window; its socket is opened when it is first needed, and closed with the scope. */
export const makeWindowClient = Effect.fnUntraced(function*(settings: WindowClientSettings): Effect.fn.Return<WindowClient, never, Scope.Scope> {
  const { label, timeoutMs, window, wire } = settings
  const errands = new Map<string, Errand>()
  const waiting = yield* Queue.unbounded<Errand>()
  const busy = yield* Latch.make(false)
  const permits = yield* Semaphore.make(window)
  const closed = new Closed({ endpoint: label, detail: "the client has been closed" })
  let isClosed = false
  /** Since when something was sent and nothing heard. */
  let silentSinceMs: number | undefined
  /** How long silence lasts until the sockets are renewed. It doubles: peers that are slow, not gone, need the connection that is there. */
  let silenceMs = (settings.silencesMax ?? 0) * timeoutMs

  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isClosed = true
      for (const errand of errands.values()) failErrand(errand, closed)
    }))

  const stray = Metric.update(ZmqMetrics.strayReplies, 1)
  const receive = Effect.fnUntraced(function*(frames: Frames) {
    silentSinceMs = undefined
    silenceMs = (settings.silencesMax ?? 0) * timeoutMs
    // A server may answer under the empty delimiter of a REQ peer.
    const body = frames.length === 2 && frames[0]!.length === 0 ? frames[1]! : frames[0]!
    const replies = wire.decodeReplies(body.toString("utf8"))
    if (Result.isFailure(replies)) {
      yield* stray
      return yield* Effect.logWarning("a reply cannot be read", replies.failure.message)
    }
    for (const { id, reply } of replies.success) {
      const errand = errands.get(id)
      if (errand === undefined || Deferred.isDoneUnsafe(errand.answer)) yield* stray
      else if (takeReply(errand, reply)) errands.delete(id)
      else if (errand.phase === "sent") yield* restErrand(errand, settings.retry, yield* Clock.currentTimeMillis, label)
    }
  })
  const carriers = yield* makeCarriers(settings.addresses, settings.open, receive)

  const isWaiting = ({ id, phase }: Errand) => phase === "waiting" && errands.has(id)
  const sendFrame = Effect.fnUntraced(function*(some: ReadonlyArray<Errand>) {
    const carrier = yield* carriers.current
    // Some may have ended while there was no server.
    const frame = some.filter(isWaiting)
    if (frame.length === 0) return
    const nowMs = yield* Clock.currentTimeMillis
    for (const errand of frame) errand.phase = "sent"
    silentSinceMs ??= nowMs
    yield* carrier.send(wire.encodeRequests(
      carrier.client,
      frame.map(({ dueMs, id, request }) => ({ id, request, deadlineMs: Math.max(1, dueMs - nowMs) }))
    ))
  }, Effect.catch((error) => Effect.logDebug("a frame was not sent; its requests have a deadline", error.message)))
  yield* Queue.takeAll(waiting).pipe(
    // A turn for others that are about to be submitted: they go along.
    Effect.tap(() => Effect.yieldNow),
    Effect.zipWith(Queue.clear(waiting), (first, more) => [...new Set([...first, ...more])]),
    Effect.flatMap((taken) =>
      Effect.gen(function*() {
        for (let rest = taken.filter(isWaiting); rest.length > 0; rest = rest.slice(settings.joinMax)) {
          yield* sendFrame(rest.slice(0, settings.joinMax))
        }
      })),
    Effect.forever,
    Effect.forkScoped
  )

  const sweep = Effect.gen(function*() {
    const nowMs = yield* Clock.currentTimeMillis
    let expired = 0
    for (const errand of errands.values()) {
      if (errand.dueMs > nowMs) continue
      if (errand.phase === "resting") {
        errand.phase = "waiting"
        errand.attempts++
        errand.dueMs = nowMs + timeoutMs
        yield* Metric.update(ZmqMetrics.resentRequests, 1)
        Queue.offerUnsafe(waiting, errand)
      } else {
        expired++
        yield* Metric.update(ZmqMetrics.timeouts, 1)
        yield* restErrand(errand, settings.retry, nowMs, label)
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
    Effect.andThen(Effect.suspend(() => errands.size === 0 ? Latch.close(busy) : Effect.void)),
    (turn) => Effect.andThen(busy.await, turn),
    Effect.forever,
    Effect.forkScoped
  )

  const carry = Effect.fnUntraced(function*(request: ChargeRequest) {
    if (isClosed) return yield* new TransportError({ reason: closed, chargeKey: request.chargeKey })
    const errand = makeErrand(randomUUID(), request, (yield* Clock.currentTimeMillis) + timeoutMs)
    errands.set(errand.id, errand)
    Latch.openUnsafe(busy)
    Queue.offerUnsafe(waiting, errand)
    return yield* Effect.ensuring(Deferred.await(errand.answer), Effect.sync(() => errands.delete(errand.id)))
  })
  const full = (request: ChargeRequest) =>
    new TransportError({ reason: new Backpressure({ endpoint: label, window }), chargeKey: request.chargeKey })

  return {
    submit: (request) =>
      settings.whenFull === "fail"
        ? Effect.flatMap(permits.withPermitsIfAvailable(1)(carry(request)), (outcome) =>
          outcome._tag === "None" ? Effect.fail(full(request)) : Effect.succeed(outcome.value))
        : permits.withPermit(carry(request))
  }
})
