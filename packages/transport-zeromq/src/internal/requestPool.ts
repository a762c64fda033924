/**
 * Many requests over a few REQ sockets. A socket that is free takes what waits, joins it into one frame and sends that
 * frame until every item is answered or the attempts are used up. An attempt that is answered in full is plain callbacks;
 * opening a socket, and everything after a first attempt that was not, is a fiber.
 *
 * Answers are matched by the request's id on the socket that asked; what matches nothing is counted and dropped. Only
 * troubles of the transport are tried again here: an error of the worker is an answer.
 */
import { Backpressure, Closed, RetriesExhausted, TransportError } from "@purser/core"
import { Cause, Clock, Data, Deferred, Effect, Exit, Fiber, Latch, Metric, Result, type Schedule, type Scope } from "effect"
import { ZmqMetrics } from "../ZmqMetrics.ts"
import type { Frames } from "../ZmqSocket.ts"
import type { ReplyOf } from "./errand.ts"
import { makeIds } from "./ids.ts"
import { type ClientWire, joinChars, type WindowClient } from "./windowClient.ts"
import { type LazyPirate, type LazyPirateOptions, makeLazyPirate } from "./lazyPirate.ts"
import { makeLine } from "./line.ts"

/** Limits of a pool, and what it needs to speak. */
export interface RequestPoolOptions<Req, A, E> extends LazyPirateOptions {
  readonly wire: ClientWire<Req, A, E>
  /** What errors of the transport call a request. */
  readonly keyOf: (request: Req) => string | null
  /** As of a window. */
  readonly fits?: ((request: Req, reply: ReplyOf<A, E>) => boolean) | undefined
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

const noop = () => undefined
const none: ReadonlyArray<TransportError> = []

/** One request on its way; a class and no literal for the same reason as an `Errand`. */
class Entry<Req, A, E> {
  readonly id: string
  readonly request: Req
  readonly traceparent: string | undefined
  readonly deadlineMs: number
  /** Gets the answer; use `end`. */
  readonly done: (exit: Exit.Exit<A, E | TransportError>) => void
  /** Servers' refusals, at most one an attempt. */
  refusals = none
  /** Answered, or given up by who waited for it. */
  over = false
  /** Tells the socket that nobody waits for this entry any more. */
  onAbandon: () => void = noop

  constructor(id: string, request: Req, traceparent: string | undefined, deadlineMs: number, done: (exit: Exit.Exit<A, E | TransportError>) => void) {
    this.id = id
    this.request = request
    this.traceparent = traceparent
    this.deadlineMs = deadlineMs
    this.done = done
  }
}

/** One socket's work. Its functions are made once, and not for each frame. */
interface Slot<Req, A, E> {
  readonly pirate: LazyPirate
  /** What it is to get answers for. */
  some: ReadonlyArray<Entry<Req, A, E>>
  /** When the attempt without a fiber is over. */
  dueMs: number
  readonly heard: (answer: Frames | TransportError) => void
  readonly abandoned: () => void
}

const isOpen = <Req, A, E>(entry: Entry<Req, A, E>) => !entry.over
const withKey = (error: TransportError, chargeKey: string | null) => new TransportError({ reason: error.reason, chargeKey })
const end = <Req, A, E>(entry: Entry<Req, A, E>, exit: Exit.Exit<A, E | TransportError>) => {
  if (entry.over) return
  entry.over = true
  entry.done(exit)
}

const entryOf = <Req, A, E>(entries: ReadonlyArray<Entry<Req, A, E>>, id: string) => {
  for (const entry of entries) if (entry.id === id) return entry
  return undefined
}

const stray = Metric.update(ZmqMetrics.strayReplies, 1)

/** Gives each entry its answer, and tells whether none is left without one, else the frame is sent again. */
const distribute = <Req, A, E>({ fits, wire }: Pick<RequestPoolOptions<Req, A, E>, "fits" | "wire">, entries: ReadonlyArray<Entry<Req, A, E>>, frames: Frames, run: (effect: Effect.Effect<void>) => unknown): boolean => {
  const text = frames.length === 1 ? frames[0]!.toString("utf8") : frames.map((frame) => frame.toString("utf8")).join("")
  const replies = wire.decodeReplies(text, entries)
  if (Result.isFailure(replies)) {
    run(Effect.andThen(stray, Effect.logWarning("a reply cannot be read", replies.failure.message)))
    return false
  }
  for (const { id, reply } of replies.success) {
    const entry = entryOf(entries, id)
    if (entry === undefined || fits?.(entry.request, reply) === false) run(stray)
    else if (Result.isFailure(reply) && reply.failure instanceof TransportError && reply.failure.isRetryable) entry.refusals = [...entry.refusals, reply.failure]
    else end(entry, Result.isSuccess(reply) ? Exit.succeed(reply.success) : Exit.fail(reply.failure))
  }
  return !entries.some(isOpen)
}

/** What to say of an entry whose attempts are used up. Only when each attempt was refused is it known what came of them. */
const verdict = (refusals: ReadonlyArray<TransportError>, error: TransportError | Unanswered, attempts: number, endpoint: string): TransportError => {
  if (refusals.length === attempts) {
    return refusals.find(({ outcome }) => outcome === "unknown") ?? refusals[attempts - 1]!
  }
  if (error._tag === "TransportError" && error.reason._tag === "Closed") return error
  return new TransportError({ reason: new RetriesExhausted({ endpoint, attempts }), chargeKey: null })
}

/** Sends a frame until every entry is answered; entries that are left get the last refusal or `RetriesExhausted`. `first`: how a first attempt has failed. */
const work = Effect.fnUntraced(function*<Req, A, E>(
  options: RequestPoolOptions<Req, A, E>,
  pirate: LazyPirate,
  entries: ReadonlyArray<Entry<Req, A, E>>,
  run: (effect: Effect.Effect<void>) => unknown,
  first?: TransportError | Unanswered
) {
  let attempts = 0
  const attempt = Effect.suspend((): Effect.Effect<void, TransportError | Unanswered> => {
    const open = entries.filter(isOpen)
    attempts++
    if (attempts === 1 && first !== undefined) return Effect.andThen(pirate.recycle, Effect.fail(first))
    return pirate.ask(
      attempts,
      (client) => options.wire.encodeRequests(client, open),
      (frames) => Effect.suspend(() => distribute(options, open, frames, run) ? Effect.void : Effect.fail(new Unanswered()))
    )
  })
  const abandoned = yield* Deferred.make<void>()
  const check = () => {
    if (!entries.some(isOpen)) Deferred.doneUnsafe(abandoned, Effect.void)
  }
  for (const entry of entries) entry.onAbandon = check
  check()

  yield* attempt.pipe(
    Effect.tapError((error) => Effect.sync(() => {
      // Tried again as the schedule says: the operator may let the key in.
      if (error._tag === "TransportError" && error.reason._tag === "Unauthorized") for (const entry of entries.filter(isOpen)) entry.refusals = [...entry.refusals, error]
    })),
    Effect.retry(options.retry),
    Effect.raceFirst(Deferred.await(abandoned)),
    Effect.catch((error) =>
      Effect.sync(() => entries.filter(isOpen).forEach((entry) => end(entry, Exit.fail(withKey(verdict(entry.refusals, error, attempts, options.label), options.keyOf(entry.request))))))
    ),
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.interrupt
        : Effect.sync(() => entries.filter(isOpen).forEach((entry) => end(entry, Exit.die(Cause.squash(cause)))))
    )
  )
})

/** Makes a pool; its sockets are opened when they are first needed, and closed with the scope. */
export const makeRequestPool = Effect.fnUntraced(function*<Req, A, E>(options: RequestPoolOptions<Req, A, E>): Effect.fn.Return<WindowClient<Req, A, E>, never, Scope.Scope> {
  type One = Entry<Req, A, E>
  const { keyOf, label, sizeOf, timeoutMs, wire } = options
  const clock = yield* Clock.Clock
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const queue = makeLine<One>()
  let waiting = 0
  /** Taken, and too long for the frame that it was taken for. */
  let held: One | undefined
  const fibers = new Set<Fiber.Fiber<void>>()
  const busy = yield* Latch.make(false)
  const nextId = makeIds()
  let closed = false
  let distributing = false
  const closedError = new TransportError({ reason: new Closed({ endpoint: label, detail: "the client has been closed" }), chargeKey: null })

  const slots = Array.from({ length: options.sockets }, (): Slot<Req, A, E> => {
    const slot: Slot<Req, A, E> = { pirate: makeLazyPirate(options), some: [], dueMs: Infinity, heard: (answer) => heard(slot, answer), abandoned: () => abandoned(slot) }
    return slot
  })
  // The last one that was used is the next one: a socket is opened when all that there are have work.
  const free = slots.toReversed()

  const takeOne = (): One | undefined => {
    if (held !== undefined) {
      const one = held
      held = undefined
      return one
    }
    const one = queue.take()
    if (one !== undefined) waiting--
    return one
  }
  /** What leaves in one frame: a fair share, so that one frame does not hold what idle sockets could carry. */
  const takeShare = (): ReadonlyArray<One> => {
    const share = Math.min(options.joinMax, Math.ceil((waiting + (held === undefined ? 0 : 1)) / options.sockets))
    const taken: Array<One> = []
    let chars = 0
    while (taken.length < share) {
      const one = takeOne()
      if (one === undefined) break
      if (one.over) continue
      chars += sizeOf?.(one.request) ?? 0
      if (chars > joinChars && taken.length > 0) {
        held = one
        break
      }
      taken.push(one)
    }
    return taken
  }

  const release = (slot: Slot<Req, A, E>) => {
    slot.some = []
    free.push(slot)
    next()
  }
  const fork = (effect: Effect.Effect<void>, ended: () => void) => {
    const fiber = run(effect)
    fibers.add(fiber)
    fiber.addObserver(() => {
      fibers.delete(fiber)
      ended()
    })
  }
  const persist = (slot: Slot<Req, A, E>, first?: TransportError | Unanswered) =>
    fork(work(options, slot.pirate, slot.some, run, first), () => release(slot))

  /** The attempt without a fiber is over. */
  const settle = (slot: Slot<Req, A, E>) => {
    slot.dueMs = Infinity
    for (const one of slot.some) one.onAbandon = noop
  }
  const heard = (slot: Slot<Req, A, E>, answer: Frames | TransportError) => {
    settle(slot)
    if (answer instanceof TransportError) return persist(slot, answer)
    // Whoever is answered may ask again at once: that goes over this socket, and not over another one.
    distributing = true
    const answered = distribute(options, slot.some, answer, run)
    distributing = false
    if (answered) return release(slot)
    persist(slot, new Unanswered())
    next()
  }
  const expire = (slot: Slot<Req, A, E>) => {
    settle(slot)
    run(Metric.update(ZmqMetrics.timeouts, 1))
    persist(slot, slot.pirate.timedOut(1))
  }
  const abandoned = (slot: Slot<Req, A, E>) => {
    if (slot.some.some(isOpen)) return
    settle(slot)
    fork(slot.pirate.recycle, () => release(slot))
  }
  const begin = (slot: Slot<Req, A, E>, some: ReadonlyArray<One>) => {
    slot.some = some
    if (!slot.pirate.askNow((client) => wire.encodeRequests(client, some), slot.heard)) return persist(slot)
    slot.dueMs = clock.currentTimeMillisUnsafe() + timeoutMs
    for (const one of some) one.onAbandon = slot.abandoned
    busy.openUnsafe()
  }
  const next = () => {
    if (closed || distributing) return
    while (free.length > 0) {
      const some = takeShare()
      if (some.length === 0) {
        if (waiting === 0 && held === undefined) return
        continue
      }
      begin(free.pop()!, some)
    }
  }

  // One fiber for the deadlines of all sockets.
  yield* Effect.sleep(Math.min(100, Math.max(1, timeoutMs / 10))).pipe(
    Effect.andThen(Effect.sync(() => {
      const nowMs = clock.currentTimeMillisUnsafe()
      for (const slot of slots) if (slot.dueMs <= nowMs) expire(slot)
      if (slots.every(({ dueMs }) => dueMs === Infinity)) busy.closeUnsafe()
    })),
    (turn) => Effect.andThen(busy.await, turn),
    Effect.forever,
    Effect.forkScoped
  )
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      closed = true
      const left = slots.flatMap(({ some }) => some)
      for (let one = takeOne(); one !== undefined; one = takeOne()) left.push(one)
      for (const one of left) end(one, Exit.fail(withKey(closedError, keyOf(one.request))))
      return Effect.andThen(Fiber.interruptAll([...fibers]), Effect.forEach(slots, ({ pirate }) => pirate.recycle, { discard: true }))
    })
  )

  const submit = (request: Req, traceparent: string | undefined) =>
    Effect.callback<A, E | TransportError>((resume) => {
      if (closed) return resume(Effect.fail(withKey(closedError, keyOf(request))))
      if (waiting >= options.waitingMax) {
        return resume(Effect.fail(new TransportError({ reason: new Backpressure({ endpoint: label, window: options.waitingMax }), chargeKey: keyOf(request) })))
      }
      const entry: One = new Entry(nextId(), request, traceparent, timeoutMs, resume)
      queue.add(entry)
      waiting++
      next()
      return Effect.sync(() => {
        if (entry.over) return
        entry.over = true
        entry.onAbandon()
      })
    })
  return {
    submit,
    submitAll: (from, write, traceparent) =>
      Effect.forEach(from, (one) => {
        const request = write(one)
        return Effect.result(Result.isSuccess(request) ? submit(request.success, traceparent) : Effect.fail(request.failure))
      }, { concurrency: "unbounded" })
  }
})
