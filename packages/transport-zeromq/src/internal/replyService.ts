/**
 * A service at one socket: many requests at a time, each answered on its own way back.
 *
 * A literal REP socket serves one request after the other and is dead after a handler that never answers. Here every
 * request that has a way back is answered: by the app, or by a refusal of what is malformed, too long, too much or too
 * late. An answer that cannot be sent is counted; the requester asks again.
 */
import { Backpressure, type DeadLetter, MalformedMessage, PeerUnreachable, Principal, type ReplyItem, TransportError, type TransportErrorReason, Unauthorized } from "@purser/core"
import { type Cause, Effect, Metric, Queue, type Scope } from "effect"
import { ZmqMetrics } from "../ZmqMetrics.ts"
import type { Frames } from "../ZmqSocket.ts"
import { senderOf } from "./frameSeal.ts"
import { makeInFlight } from "./inFlight.ts"
import { makeOutbox, type WayBack } from "./outbox.ts"

/** How a server that stops tells those who work for it. */
export interface ServerEnd {
  /** Nothing new is to be begun. */
  readonly isClosing: () => boolean
  /** Calls back when the drain time is over: what still runs is to be cut short. The result takes the callback away. */
  readonly onCut: (callback: () => void) => () => void
}

/** One frame of requests that could be read, or its refusal. No effect fails or is interrupted, so that answers always come. */
export interface ReplyCall {
  /** Requests in it. */
  readonly size: number
  /** Whether each of them can be answered by itself. */
  readonly divisible: boolean
  /** Answers the whole frame at once. */
  readonly answer: (end: ServerEnd) => Effect.Effect<string>
  /** Gives each answer of a divisible frame as soon as there is one. */
  readonly answerEach: (end: ServerEnd, put: (item: ReplyItem) => Effect.Effect<void>) => Effect.Effect<void>
  /** Why nothing of it can be read. */
  readonly malformed: TransportErrorReason | undefined
  /** Answers that none of it will be handled. */
  readonly refuse: (reason: TransportErrorReason) => string
}

/** What gives the answers. It minds the server's end itself. */
export interface ReplyApp {
  readonly read: (text: string) => ReplyCall
  /** Answers what is no text. */
  readonly refuseUnread: (reason: TransportErrorReason) => string
  /** One frame of several answers. */
  readonly join: (items: ReadonlyArray<ReplyItem>) => string
}

/** A received message: its way back and what was sent, which should be one frame; or why it can be neither served nor answered. */
export type Arrival =
  | { readonly _tag: "Arrival"; readonly back: WayBack; readonly payload: Frames }
  | { readonly _tag: "Unserved"; readonly reason: TransportErrorReason }

/** Where requests come in. */
export interface ReplyDesk {
  readonly incoming: Queue.Dequeue<Frames, Cause.Done>
  readonly open: (frames: Frames) => Effect.Effect<Arrival>
  /** Waits until the answers of earlier sends are with libzmq. */
  readonly flush: Effect.Effect<void>
}

/** Limits of the service. */
export interface ReplyServiceOptions {
  readonly label: string
  /** Requests that are taken in, waiting ones included; a frame beyond that is refused with `Backpressure`. */
  readonly takenMax: number
  readonly requestMaxBytes: number
  readonly drainMs: number
  /** The pattern's name on dead letters. */
  readonly transport: string
  readonly bury: (letter: DeadLetter) => Effect.Effect<void>
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

// Replacing bad bytes would make one id of two different ones.
const decodeText = (body: Frames[number]) =>
  Effect.try({ try: () => utf8.decode(body), catch: () => new MalformedMessage({ detail: "not UTF-8", field: null }) })

/** After the drain time, how long work that was cut short may take to answer, and the answers to leave. */
const cutMs = 1000

/** Serves a desk until the scope closes, then stops taking requests and finishes what was taken. */
export const serveReplies = Effect.fnUntraced(function*(
  desk: ReplyDesk,
  app: ReplyApp,
  options: ReplyServiceOptions
): Effect.fn.Return<never, never, Scope.Scope> {
  const inFlight = yield* makeInFlight
  const outbox = makeOutbox(app.join)
  const cuts = new Set<() => void>()
  let closing = false
  const end: ServerEnd = {
    isClosing: () => closing,
    onCut: (callback) => {
      cuts.add(callback)
      return () => cuts.delete(callback)
    }
  }

  const refuse = (back: WayBack, reply: (reason: TransportErrorReason) => string, reason: TransportErrorReason) =>
    Metric.update(ZmqMetrics.refusedRequests, 1).pipe(
      Effect.andThen(Effect.suspend(() => outbox.send(back, reply(reason)))),
      Effect.andThen(back.ended ?? Effect.void)
    )

  // An answer is not enough: a PUSH peer never sees one, and a REQ peer need not understand it.
  const bury = (principal: string | null, payload: Frames, reason: TransportErrorReason) =>
    Effect.suspend(() => options.bury({
      transport: options.transport,
      principal,
      reason: reason._tag,
      detail: new TransportError({ reason, chargeKey: null }).message,
      body: Buffer.concat([...payload])
    }))

  const take = Effect.fnUntraced(function*(frames: Frames) {
    const arrival = yield* desk.open(frames)
    if (arrival._tag === "Unserved") {
      return yield* Effect.andThen(Metric.update(ZmqMetrics.refusedRequests, 1), bury(null, frames, arrival.reason))
    }
    const { back, payload } = arrival
    const { principal, refused } = senderOf(frames)
    const body = payload.length === 1 ? payload[0] : undefined
    const malformed = (detail: string) => {
      const reason = new MalformedMessage({ detail, field: null })
      return Effect.andThen(bury(principal, payload, reason), refuse(back, app.refuseUnread, reason))
    }
    if (body === undefined) return yield* malformed("expected one frame of JSON")
    if (body.length > options.requestMaxBytes) return yield* malformed(`${body.length} bytes are more than ${options.requestMaxBytes}`)
    return yield* Effect.matchEffect(decodeText(body), {
      onFailure: (reason) => Effect.andThen(bury(principal, payload, reason), refuse(back, app.refuseUnread, reason)),
      onSuccess: (text) => {
        const call = app.read(text)
        if (refused !== null) {
          const reason = new Unauthorized({ detail: refused })
          return Effect.all([Metric.update(ZmqMetrics.refusedPeers, 1), bury(principal, payload, reason), refuse(back, call.refuse, reason)], { discard: true })
        }
        const buried = call.malformed === undefined ? Effect.void : bury(principal, payload, call.malformed)
        if (closing) return refuse(back, call.refuse, new PeerUnreachable({ endpoint: options.label, detail: "the server is closing" }))
        if (inFlight.size() >= options.takenMax) return refuse(back, call.refuse, new Backpressure({ endpoint: options.label, window: options.takenMax }))
        const work = call.divisible && !back.whole
          ? call.answerEach(end, (item) => outbox.put(back, item))
          : Effect.flatMap(call.answer(end), (reply) => outbox.send(back, reply))
        const ended = back.ended === undefined ? work : Effect.andThen(work, back.ended)
        const known = principal === null ? ended : Effect.provideService(ended, Principal, principal)
        return Effect.andThen(buried, inFlight.run(Effect.uninterruptible(known), call.size))
      }
    })
  })

  yield* Effect.addFinalizer(() =>
    Effect.gen(function*() {
      closing = true
      if (!(yield* inFlight.settle(options.drainMs))) {
        yield* Effect.logWarning(`${inFlight.size()} requests did not end within ${options.drainMs} ms and are cut short`)
        for (const callback of cuts) callback()
        yield* inFlight.settle(cutMs)
      }
      yield* Effect.timeoutOption(Effect.interruptible(desk.flush), cutMs)
    })
  )
  // It goes on while the finalizer drains, so that late requests are refused instead of left without an answer.
  yield* Queue.takeAll(desk.incoming).pipe(
    Effect.flatMap((batch) => Effect.forEach(batch, take, { discard: true })),
    Effect.forever,
    Effect.ignore,
    Effect.forkDetach
  )
  return yield* Effect.never
})
