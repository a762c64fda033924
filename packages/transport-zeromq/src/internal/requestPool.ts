/**
 * Many requests over a few REQ sockets. Each socket is worked by one fiber, which takes what waits, joins it into one
 * frame and sends that frame until every item is answered or the attempts are used up.
 *
 * Answers are matched by the request's id on the socket that asked; what matches nothing is counted and dropped. Only
 * troubles of the transport are tried again here: an error of the worker is an answer.
 */
import { Backpressure, Closed, RetriesExhausted, TransportError } from "@purser/core"
import { Cause, Data, Deferred, Effect, Exit, Metric, Option, Queue, Result, type Schedule, type Scope } from "effect"
import { ZmqMetrics } from "../ZmqMetrics.ts"
import type { Frames } from "../ZmqSocket.ts"
import { makeIds } from "./ids.ts"
import { type ClientWire, joinChars, type WindowClient } from "./windowClient.ts"
import { type LazyPirate, type LazyPirateOptions, makeLazyPirate } from "./lazyPirate.ts"

/** Limits of a pool, and what it needs to speak. */
export interface RequestPoolOptions<Req, A, E> extends LazyPirateOptions {
  readonly wire: ClientWire<Req, A, E>
  /** What errors of the transport call a request. */
  readonly keyOf: (request: Req) => string | null
  /** How long a request's text is, where requests may be long. */
  readonly sizeOf?: ((request: Req) => number) | undefined
  readonly sockets: number
  /** Requests that may wait for a socket; one more is `Backpressure`. */
  readonly waitingMax: number
  /** Requests that are joined into one frame at the most. */
  readonly joinMax: number
  /** When to send again after silence; its end is the end of the attempts. */
  readonly retry: Schedule.Schedule<unknown, unknown>
}

/** An attempt whose frame was not answered in full. */
class Unanswered extends Data.TaggedError("Unanswered")<{}> {}

/** One request on its way. */
interface Entry<Req, A, E> {
  readonly id: string
  readonly request: Req
  readonly answer: Deferred.Deferred<A, E | TransportError>
  /** Servers' refusals, at most one an attempt. */
  readonly refusals: Array<TransportError>
  abandoned: boolean
  /** Tells the socket's fiber that nobody waits for this entry any more. */
  onAbandon: Effect.Effect<unknown>
}

const isOpen = <Req, A, E>(entry: Entry<Req, A, E>) => !entry.abandoned && !Deferred.isDoneUnsafe(entry.answer)
const withKey = (error: TransportError, chargeKey: string | null) => new TransportError({ reason: error.reason, chargeKey })

/** Gives each entry its answer. Fails while an entry is without one, so that the frame is sent again. */
const distribute = <Req, A, E>(wire: ClientWire<Req, A, E>, entries: ReadonlyArray<Entry<Req, A, E>>, frames: Frames) =>
  Effect.gen(function*() {
    const replies = wire.decodeReplies(frames.map((frame) => frame.toString("utf8")).join(""), entries)
    if (Result.isFailure(replies)) {
      yield* Metric.update(ZmqMetrics.strayReplies, 1)
      yield* Effect.logWarning("a reply cannot be read", replies.failure.message)
      return yield* new Unanswered()
    }
    for (const { id, reply } of replies.success) {
      const entry = entries.find((candidate) => candidate.id === id)
      if (entry === undefined) yield* Metric.update(ZmqMetrics.strayReplies, 1)
      else if (Result.isFailure(reply) && reply.failure instanceof TransportError && reply.failure.isRetryable) entry.refusals.push(reply.failure)
      else yield* Deferred.done(entry.answer, Result.isSuccess(reply) ? Exit.succeed(reply.success) : Exit.fail(reply.failure))
    }
    if (entries.some(isOpen)) return yield* new Unanswered()
  })

/** What to say of an entry whose attempts are used up. Only when each attempt was refused is it known what came of them. */
const verdict = (refusals: ReadonlyArray<TransportError>, error: TransportError | Unanswered, attempts: number, endpoint: string): TransportError => {
  if (refusals.length === attempts) {
    return refusals.find(({ outcome }) => outcome === "unknown") ?? refusals[attempts - 1]!
  }
  if (error._tag === "TransportError" && error.reason._tag === "Closed") return error
  return new TransportError({ reason: new RetriesExhausted({ endpoint, attempts }), chargeKey: null })
}

/** Sends a frame until every entry is answered; entries that are left get the last refusal or `RetriesExhausted`. */
const work = Effect.fnUntraced(function*<Req, A, E>(options: RequestPoolOptions<Req, A, E>, pirate: LazyPirate, entries: ReadonlyArray<Entry<Req, A, E>>) {
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
      Effect.forEach(entries.filter(isOpen), (entry) => Deferred.fail(entry.answer, withKey(verdict(entry.refusals, error, attempts, options.label), options.keyOf(entry.request))))
    ),
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.interrupt
        : Effect.forEach(entries.filter(isOpen), (entry) => Deferred.failCause(entry.answer, Cause.die(Cause.squash(cause))))
    )
  )
})

/** Makes a pool; its sockets are opened when they are first needed, and closed with the scope. */
export const makeRequestPool = Effect.fnUntraced(function*<Req, A, E>(options: RequestPoolOptions<Req, A, E>): Effect.fn.Return<WindowClient<Req, A, E>, never, Scope.Scope> {
  const queue = yield* Queue.dropping<Entry<Req, A, E>>(options.waitingMax)
  const entries = new Set<Entry<Req, A, E>>()
  const nextId = makeIds()
  let closed = false
  const closedError = new TransportError({ reason: new Closed({ endpoint: options.label, detail: "the client has been closed" }), chargeKey: null })

  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      closed = true
      return Effect.forEach(entries, (entry) => Deferred.fail(entry.answer, withKey(closedError, options.keyOf(entry.request))), { discard: true })
    })
  )

  const slot = Effect.gen(function*() {
    const pirate = yield* makeLazyPirate(options)
    /** Taken, and too long for the frame that it was taken for. */
    let held: Entry<Req, A, E> | undefined
    return yield* Effect.gen(function*() {
      const taken = [held ?? (yield* Queue.take(queue))]
      held = undefined
      // A fair share, so that one frame does not hold what idle sockets could carry.
      const share = Math.min(options.joinMax, Math.ceil((1 + (yield* Queue.size(queue))) / options.sockets))
      let chars = options.sizeOf?.(taken[0]!.request) ?? 0
      while (taken.length < share) {
        const next = yield* Queue.poll(queue)
        if (Option.isNone(next)) break
        chars += options.sizeOf?.(next.value.request) ?? 0
        if (chars > joinChars) {
          held = next.value
          break
        }
        taken.push(next.value)
      }
      const open = taken.filter(isOpen)
      if (open.length > 0) yield* work(options, pirate, open)
    }).pipe(Effect.forever)
  })
  yield* Effect.forEach(Array.from({ length: options.sockets }), () => Effect.forkScoped(slot), { discard: true })

  const submit = Effect.fnUntraced(function*(request: Req) {
      const entry: Entry<Req, A, E> = {
        id: nextId(),
        request,
        answer: yield* Deferred.make<A, E | TransportError>(),
        refusals: [],
        abandoned: false,
        onAbandon: Effect.void
      }
      if (closed) return yield* withKey(closedError, options.keyOf(request))
      if (!(yield* Queue.offer(queue, entry))) {
        const full = new Backpressure({ endpoint: options.label, window: options.waitingMax })
        return yield* new TransportError({ reason: full, chargeKey: options.keyOf(request) })
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
  return {
    submit,
    submitAll: (from, write) =>
      Effect.forEach(from, (one) => {
        const request = write(one)
        return Effect.result(Result.isSuccess(request) ? submit(request.success) : Effect.fail(request.failure))
      }, { concurrency: "unbounded" })
  }
})
