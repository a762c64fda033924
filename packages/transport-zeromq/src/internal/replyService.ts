/**
 * A ROUTER that answers REQ peers: many requests at a time on one socket, one answer for each.
 *
 * A literal REP socket serves one request after the other and is dead after a handler that never answers. Here every
 * request that has a way back is answered: by the app, or by a refusal of what is malformed, too long, too much or too
 * late. An answer whose requester is gone is counted; the requester asks again.
 */
import { Backpressure, MalformedMessage, PeerUnreachable, type TransportErrorReason } from "@purser/core"
import { Deferred, Effect, Metric, Queue, type Scope } from "effect"
import { ZmqMetrics } from "../ZmqMetrics.ts"
import type { Frames, ZmqSocket } from "../ZmqSocket.ts"
import { openEnvelope } from "./envelope.ts"
import { makeInFlight } from "./inFlight.ts"

/** How a server that stops tells those who work for it. */
export interface ServerEnd {
  /** Nothing new is to be begun. */
  readonly isClosing: () => boolean
  /** Succeeds when the drain time is over: what still runs is to be cut short. */
  readonly cut: Effect.Effect<void>
}

/** What gives the answers; neither effect fails. */
export interface ReplyApp {
  /** Answers a request, many at a time. It is never interrupted, so that an answer always comes; it minds the server's end itself. */
  readonly answer: (text: string, end: ServerEnd) => Effect.Effect<string>
  /** Answers a request that will not be handled; `text` is undefined where there is none. */
  readonly refuse: (text: string | undefined, reason: TransportErrorReason) => string
}

/** Limits of the service. */
export interface ReplyServiceOptions {
  readonly label: string
  /** Requests that are taken in, waiting ones included; one more is refused with `Backpressure`. */
  readonly takenMax: number
  readonly requestMaxBytes: number
  readonly drainMs: number
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

// Replacing bad bytes would make one id of two different ones.
const decodeText = (body: Frames[number]) =>
  Effect.try({ try: () => utf8.decode(body), catch: () => new MalformedMessage({ detail: "not UTF-8", field: null }) })

/** After the drain time, how long work that was cut short may take to answer, and the answers to leave. */
const cutMs = 1000

/** Serves a socket until the scope closes, then stops taking requests and finishes what was taken. */
export const serveReplies = Effect.fnUntraced(function*(
  socket: ZmqSocket,
  app: ReplyApp,
  options: ReplyServiceOptions
): Effect.fn.Return<never, never, Scope.Scope> {
  const inFlight = yield* makeInFlight
  const cut = yield* Deferred.make<void>()
  let closing = false
  const end: ServerEnd = { isClosing: () => closing, cut: Deferred.await(cut) }

  const send = (envelope: Frames, reply: string) =>
    Effect.catch(socket.send([...envelope, reply]), (error) =>
      Effect.andThen(
        Metric.update(ZmqMetrics.unroutableReplies, 1),
        Effect.logDebug("a reply was not sent", error.message)
      ))
  const refuse = (envelope: Frames, text: string | undefined, reason: TransportErrorReason) =>
    Effect.andThen(
      Metric.update(ZmqMetrics.refusedRequests, 1),
      Effect.suspend(() => send(envelope, app.refuse(text, reason)))
    )

  const take = Effect.fnUntraced(function*(frames: Frames) {
    const { body, envelope } = openEnvelope(frames)
    if (body === undefined) {
      const detail = `expected one frame of JSON, got ${frames.length - envelope.length}`
      return yield* refuse(envelope, undefined, new MalformedMessage({ detail, field: null }))
    }
    if (body.length > options.requestMaxBytes) {
      const detail = `${body.length} bytes are more than ${options.requestMaxBytes}`
      return yield* refuse(envelope, undefined, new MalformedMessage({ detail, field: null }))
    }
    const text = yield* decodeText(body)
    if (closing) return yield* refuse(envelope, text, new PeerUnreachable({ endpoint: options.label, detail: "the server is closing" }))
    if (inFlight.size() >= options.takenMax) {
      return yield* refuse(envelope, text, new Backpressure({ endpoint: options.label, window: options.takenMax }))
    }
    return yield* inFlight.run(Effect.uninterruptible(Effect.flatMap(app.answer(text, end), (reply) => send(envelope, reply))))
  }, (effect, frames) =>
    Effect.catchTag(effect, "MalformedMessage", (reason) => refuse(openEnvelope(frames).envelope, undefined, reason)))

  yield* Effect.addFinalizer(() =>
    Effect.gen(function*() {
      closing = true
      if (!(yield* inFlight.settle(options.drainMs))) {
        yield* Effect.logWarning(`${inFlight.size()} requests did not end within ${options.drainMs} ms and are cut short`)
        yield* Deferred.succeed(cut, undefined)
        yield* inFlight.settle(cutMs)
      }
      yield* Effect.timeoutOption(Effect.interruptible(socket.flush), cutMs)
    })
  )
  // It goes on while the finalizer drains, so that late requests are refused instead of left without an answer.
  yield* Queue.takeAll(socket.incoming).pipe(
    Effect.flatMap((batch) => Effect.forEach(batch, take, { discard: true })),
    Effect.forever,
    Effect.ignore,
    Effect.forkDetach
  )
  return yield* Effect.never
})
