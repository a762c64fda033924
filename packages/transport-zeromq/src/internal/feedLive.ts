/**
 * What a subscriber hears live. It never stops listening: a SUB socket without a pending receive does not renew its
 * subscription when a publisher comes back. A reader that is too slow loses its buffer instead, and is told. A silent
 * connection is replaced on demand: one inside a process does not come back by itself.
 */
import type { FeedEvent, TransportError } from "@purser/core"
import { Clock, Effect, Exit, Latch, Metric, Queue, Scope } from "effect"
import type { Endpoint } from "../Endpoint.ts"
import type { SocketSettings } from "../SocketSettings.ts"
import { ZmqMetrics } from "../ZmqMetrics.ts"
import { type Frames, openZmqSocket } from "../ZmqSocket.ts"
import { readBroadcast, verbs } from "./feedWire.ts"
import type { Zeromq } from "./native.ts"

/** What was heard and not taken yet. */
export interface Live {
  /** Events without a hole among them, in order; those before were taken, or dropped. */
  buffer: Array<FeedEvent>
  /** The publisher's life, and the last place that it spoke of; null before it was heard. */
  epoch: string | null
  head: number
  /** Whether the buffer has overflowed since it was last asked. */
  overrun: boolean
  heardAtMs: number
  /** Opened by whatever is heard. */
  readonly news: Latch.Latch
  /** Listens at a new socket instead. */
  readonly renew: Effect.Effect<void, TransportError>
}

/** What it needs. */
export interface LiveOptions {
  readonly zmq: Zeromq
  readonly endpoints: ReadonlyArray<Endpoint>
  readonly settings: SocketSettings
  readonly bufferMax: number
}

/** Listens until the scope closes. */
export const listenLive = Effect.fnUntraced(function*(options: LiveOptions): Effect.fn.Return<Live, TransportError, Scope.Scope> {
  const { bufferMax, endpoints, settings, zmq } = options
  let life: Scope.Closeable | undefined
  const close = Effect.suspend(() => {
    const old = life
    life = undefined
    return old === undefined ? Effect.void : Scope.close(old, Exit.void)
  })
  yield* Effect.addFinalizer(() => close)
  const live: Live = {
    buffer: [],
    epoch: null,
    head: 0,
    overrun: false,
    heardAtMs: yield* Clock.currentTimeMillis,
    news: yield* Latch.make(false),
    renew: Effect.suspend(() => Effect.andThen(close, listen))
  }

  const hear = (frames: Frames, nowMs: number) => {
    const message = readBroadcast(frames)
    if (message === undefined) return false
    const { epoch } = message.body
    if (epoch !== live.epoch) {
      live.epoch = epoch
      live.buffer = []
      live.head = 0
    }
    live.heardAtMs = nowMs
    if (message.verb === verbs.alive) {
      live.head = Math.max(live.head, message.body.sequence)
      return true
    }
    const { after, events } = message.body
    if (events.length === 0) return true
    // What follows a hole can be taken up again only from the hole on.
    const continues = live.buffer.length === 0 || live.buffer[live.buffer.length - 1]!.sequence === after
    const fits = live.buffer.length + events.length <= bufferMax
    if (continues && !fits) live.overrun = true
    if (continues && fits) live.buffer.push(...events)
    else live.buffer = events.slice(-bufferMax)
    live.head = Math.max(live.head, events[events.length - 1]!.sequence)
    return true
  }

  const listen = Effect.gen(function*() {
    const scope = yield* Scope.make()
    life = scope
    yield* Effect.gen(function*() {
      const socket = yield* openZmqSocket(zmq, { kind: "subscriber", endpoints, settings, sendTimeoutMs: 0, lingerMs: 0, topics: [verbs.event, verbs.alive] })
      yield* Queue.takeAll(socket.incoming).pipe(
        Effect.flatMap((batch) =>
          Effect.flatMap(Clock.currentTimeMillis, (nowMs) => {
            const strays = batch.filter((frames) => !hear(frames, nowMs)).length
            Latch.openUnsafe(live.news)
            return strays === 0 ? Effect.void : Metric.update(ZmqMetrics.strayReplies, strays)
          })),
        Effect.forever,
        Effect.ignore,
        Effect.forkScoped
      )
    }).pipe(Scope.provide(scope))
  }).pipe(Effect.uninterruptible)
  yield* listen
  return live
})
