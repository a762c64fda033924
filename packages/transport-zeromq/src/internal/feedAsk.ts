/**
 * A subscriber's requests for pages of the past, one at a time over a DEALER. A request that is not answered in time is
 * given up with its socket, so that nothing of it can be taken for a later page.
 */
import type { ChargeKey, FeedError, FeedEvent, FeedMark, TransportError } from "@purser/core"
import { Deferred, Effect, Exit, Metric, Queue, Scope } from "effect"
import { randomUUID } from "node:crypto"
import type { Endpoint } from "../Endpoint.ts"
import type { SocketSettings } from "../SocketSettings.ts"
import { ZmqMetrics } from "../ZmqMetrics.ts"
import { type Frames, openZmqSocket, type ZmqSocket } from "../ZmqSocket.ts"
import { readAnswer, verbs, type Want, write } from "./feedWire.ts"
import type { Zeromq } from "./native.ts"

/** A page: its events or states, the publisher's epoch, its place and what stands there, and where a snapshot goes on. */
export interface Page {
  readonly events: ReadonlyArray<FeedEvent>
  readonly epoch: string
  readonly sequence: number
  readonly event: FeedMark | undefined
  readonly next: ChargeKey | null
}

/** Asks for one page; undefined when there was no answer in time. */
export type AskPage = (want: Want, limit: number) => Effect.Effect<Page | undefined, FeedError | TransportError>

/** What it needs. */
export interface AskOptions {
  readonly zmq: Zeromq
  readonly endpoints: ReadonlyArray<Endpoint>
  readonly settings: SocketSettings
  readonly timeoutMs: number
}

interface Open {
  readonly id: string
  readonly events: Array<FeedEvent>
  readonly page: Deferred.Deferred<Page, FeedError>
}

/** Makes it; the socket is opened by the first request and closed with the scope. */
export const makeAskPage = Effect.fnUntraced(function*(options: AskOptions): Effect.fn.Return<AskPage, never, Scope.Scope> {
  const { endpoints, settings, timeoutMs, zmq } = options
  let life: { readonly socket: ZmqSocket; readonly scope: Scope.Closeable } | undefined
  let open: Open | undefined

  const close = Effect.suspend(() => {
    const old = life
    life = undefined
    return old === undefined ? Effect.void : Scope.close(old.scope, Exit.void)
  })
  yield* Effect.addFinalizer(() => close)

  const receive = (frames: Frames) =>
    Effect.suspend(() => {
      const answer = readAnswer(frames)
      if (answer === undefined || open === undefined || answer.body.id !== open.id) return Metric.update(ZmqMetrics.strayReplies, 1)
      switch (answer.verb) {
        case verbs.sync:
          open.events.push(...answer.body.events)
          return Effect.void
        case verbs.done: {
          const { epoch, event, next, sequence } = answer.body
          return Deferred.succeed(open.page, { events: open.events, epoch, sequence, event, next })
        }
        case verbs.error:
          return Deferred.fail(open.page, answer.body.error)
      }
    })

  const socketOf = Effect.gen(function*() {
    if (life !== undefined) return life.socket
    const scope = yield* Scope.make()
    const socket = yield* Effect.gen(function*() {
      const opened = yield* openZmqSocket(zmq, { kind: "dealer", endpoints, settings, sendTimeoutMs: timeoutMs, lingerMs: 0 })
      yield* Queue.takeAll(opened.incoming).pipe(
        Effect.flatMap((batch) => Effect.forEach(batch, receive, { discard: true })),
        Effect.forever,
        Effect.ignore,
        Effect.forkScoped
      )
      return opened
    }).pipe(Scope.provide(scope), Effect.onError(() => Scope.close(scope, Exit.void)))
    life = { socket, scope }
    return socket
  }).pipe(Effect.uninterruptible)

  return Effect.fnUntraced(function*(want, limit) {
    const socket = yield* socketOf
    const asked: Open = { id: randomUUID(), events: [], page: yield* Deferred.make<Page, FeedError>() }
    open = asked
    const page = yield* socket.send(write({ verb: verbs.ask, body: { v: 1, id: asked.id, limit, want } })).pipe(
      // A peer that takes nothing, or is gone, is one that does not answer in time.
      Effect.catch(() => Effect.never),
      Effect.andThen(Deferred.await(asked.page)),
      Effect.timeoutOption(timeoutMs),
      Effect.ensuring(Effect.sync(() => {
        if (open === asked) open = undefined
      }))
    )
    if (page._tag === "Some") return page.value
    yield* Metric.update(ZmqMetrics.timeouts, 1)
    yield* close
    return undefined
  })
})
