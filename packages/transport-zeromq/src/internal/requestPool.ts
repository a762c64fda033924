/**
 * Many requests over a few REQ sockets. Each socket is worked by one fiber, which takes what waits, joins it into one
 * frame and sends that frame until every item is answered or the attempts are used up.
 *
 * Answers are matched by the request's id on the socket that asked; what matches nothing is counted and dropped. Only
 * troubles of the transport are tried again here: an error of the worker is an answer.
 */
import { Backpressure, type ChargeOutcome, type ChargeRequest, Closed, RetriesExhausted, type SubmitError, TransportError, type WireCodec } from "@purser/core"
import { Cause, Data, Deferred, Effect, Exit, Metric, Option, Queue, Result, type Schedule, type Scope } from "effect"
import { randomUUID } from "node:crypto"
import { ZmqMetrics } from "../ZmqMetrics.ts"
import type { Frames } from "../ZmqSocket.ts"
import { type LazyPirate, type LazyPirateOptions, makeLazyPirate } from "./lazyPirate.ts"

/** Limits of a pool, and what it needs to speak. */
export interface RequestPoolOptions extends LazyPirateOptions {
  readonly wire: WireCodec
  readonly sockets: number
  /** Requests that may wait for a socket; one more is `Backpressure`. */
  readonly waitingMax: number
  /** Requests that are joined into one frame at the most. */
  readonly joinMax: number
  /** When to send again after silence; its end is the end of the attempts. */
  readonly retry: Schedule.Schedule<unknown, unknown>
}

/** Submits one request and waits for its answer. */
export interface RequestPool {
  readonly submit: (request: ChargeRequest) => Effect.Effect<ChargeOutcome, SubmitError>
}

/** An attempt whose frame was not answered in full. */
class Unanswered extends Data.TaggedError("Unanswered")<{}> {}

/** One request on its way. */
interface Entry {
  readonly id: string
  readonly request: ChargeRequest
  readonly answer: Deferred.Deferred<ChargeOutcome, SubmitError>
  /** Servers' refusals, at most one an attempt. */
  readonly refusals: Array<TransportError>
  abandoned: boolean
  /** Tells the socket's fiber that nobody waits for this entry any more. */
  onAbandon: Effect.Effect<unknown>
}

const isOpen = (entry: Entry) => !entry.abandoned && !Deferred.isDoneUnsafe(entry.answer)
const withKey = (error: TransportError, entry: Entry) => new TransportError({ reason: error.reason, chargeKey: entry.request.chargeKey })

/** Gives each entry its answer. Fails while an entry is without one, so that the frame is sent again. */
const distribute = (wire: WireCodec, entries: ReadonlyArray<Entry>, frames: Frames) =>
  Effect.gen(function*() {
    const replies = wire.decodeReplies(frames.map((frame) => frame.toString("utf8")).join(""))
    if (Result.isFailure(replies)) {
      yield* Metric.update(ZmqMetrics.strayReplies, 1)
      yield* Effect.logWarning("a reply cannot be read", replies.failure.message)
      return yield* new Unanswered()
    }
    for (const { id, reply } of replies.success) {
      const entry = entries.find((candidate) => candidate.id === id)
      if (entry === undefined) yield* Metric.update(ZmqMetrics.strayReplies, 1)
      else if (Result.isFailure(reply) && reply.failure._tag === "TransportError" && reply.failure.isRetryable) entry.refusals.push(reply.failure)
      else yield* Deferred.done(entry.answer, Result.isSuccess(reply) ? Exit.succeed(reply.success) : Exit.fail(reply.failure))
    }
    if (entries.some(isOpen)) return yield* new Unanswered()
  })

/** What to say of an entry whose attempts are used up. Only when each attempt was refused is it known what came of them. */
const verdict = (entry: Entry, error: TransportError | Unanswered, attempts: number, endpoint: string): TransportError => {
  if (entry.refusals.length === attempts) {
    return entry.refusals.find(({ outcome }) => outcome === "unknown") ?? entry.refusals[attempts - 1]!
  }
  if (error._tag === "TransportError" && error.reason._tag === "Closed") return error
  return new TransportError({ reason: new RetriesExhausted({ endpoint, attempts }), chargeKey: null })
}

/** Sends a frame until every entry is answered; entries that are left get the last refusal or `RetriesExhausted`. */
const work = Effect.fnUntraced(function*(options: RequestPoolOptions, pirate: LazyPirate, entries: ReadonlyArray<Entry>) {
  let attempts = 0
  const attempt = Effect.suspend(() => {
    const open = entries.filter(isOpen)
    attempts++
    return pirate.ask(
      attempts,
      (client) => options.wire.encodeRequests(client, open.map(({ id, request }) => ({ id, request, deadlineMs: options.timeoutMs }))),
      (frames) => distribute(options.wire, open, frames)
    )
  })
  const abandoned = yield* Deferred.make<void>()
  const check = Effect.suspend(() => entries.some(isOpen) ? Effect.void : Deferred.succeed(abandoned, undefined))
  for (const entry of entries) entry.onAbandon = check

  yield* attempt.pipe(
    Effect.retry(options.retry),
    Effect.raceFirst(Deferred.await(abandoned)),
    Effect.catch((error) =>
      Effect.forEach(entries.filter(isOpen), (entry) => Deferred.fail(entry.answer, withKey(verdict(entry, error, attempts, options.label), entry)))
    ),
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.interrupt
        : Effect.forEach(entries.filter(isOpen), (entry) => Deferred.failCause(entry.answer, Cause.die(Cause.squash(cause))))
    )
  )
})

/** Makes a pool; its sockets are opened when they are first needed, and closed with the scope. */
export const makeRequestPool = Effect.fnUntraced(function*(options: RequestPoolOptions): Effect.fn.Return<RequestPool, never, Scope.Scope> {
  const queue = yield* Queue.dropping<Entry>(options.waitingMax)
  const entries = new Set<Entry>()
  let closed = false
  const closedError = new TransportError({ reason: new Closed({ endpoint: options.label, detail: "the client has been closed" }), chargeKey: null })

  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      closed = true
      return Effect.forEach(entries, (entry) => Deferred.fail(entry.answer, withKey(closedError, entry)), { discard: true })
    })
  )

  const slot = Effect.gen(function*() {
    const pirate = yield* makeLazyPirate(options)
    return yield* Effect.gen(function*() {
      const taken = [yield* Queue.take(queue)]
      // A fair share, so that one frame does not hold what idle sockets could carry.
      const share = Math.min(options.joinMax, Math.ceil((1 + (yield* Queue.size(queue))) / options.sockets))
      while (taken.length < share) {
        const next = yield* Queue.poll(queue)
        if (Option.isNone(next)) break
        taken.push(next.value)
      }
      const open = taken.filter(isOpen)
      if (open.length > 0) yield* work(options, pirate, open)
    }).pipe(Effect.forever)
  })
  yield* Effect.forEach(Array.from({ length: options.sockets }), () => Effect.forkScoped(slot), { discard: true })

  return {
    submit: Effect.fnUntraced(function*(request) {
      const entry: Entry = {
        id: randomUUID(),
        request,
        answer: yield* Deferred.make<ChargeOutcome, SubmitError>(),
        refusals: [],
        abandoned: false,
        onAbandon: Effect.void
      }
      if (closed) return yield* withKey(closedError, entry)
      if (!(yield* Queue.offer(queue, entry))) {
        const full = new Backpressure({ endpoint: options.label, window: options.waitingMax })
        return yield* new TransportError({ reason: full, chargeKey: request.chargeKey })
      }
      entries.add(entry)
      return yield* Deferred.await(entry.answer).pipe(
        Effect.onInterrupt(() => Effect.suspend(() => {
          entry.abandoned = true
          return entry.onAbandon
        })),
        Effect.ensuring(Effect.sync(() => entries.delete(entry)))
      )
    })
  }
})
