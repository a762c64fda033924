/**
 * A worker's side of 18/MDP: sessions with brokers, one DEALER socket for each, renewed whenever a broker is lost.
 *
 * Heartbeats have a fiber of their own, so that a long job is not taken for a dead worker. What a lost session had is not
 * given up: its work goes on, but nobody hears its answers, since the broker has given the request to another one.
 */
import type { TransportError } from "@purser/core"
import { type Cause, Clock, Deferred, Effect, Latch, Metric, Queue, Scope } from "effect"
import type { Endpoint } from "../Endpoint.ts"
import type { SocketSettings } from "../SocketSettings.ts"
import { type Frames, openZmqSocket, type OutgoingFrames, type ZmqSocket } from "../ZmqSocket.ts"
import { ZmqMetrics } from "../ZmqMetrics.ts"
import type { Addresses } from "./addresses.ts"
import { makeSeal } from "./frameSeal.ts"
import { mdp, readAtWorker } from "./mdp.ts"
import type { Zeromq } from "./native.ts"

/** What the sessions need. */
export interface MajordomoWorkerOptions {
  readonly zmq: Zeromq
  readonly settings: SocketSettings
  /** Brokers; each gets a session of its own. */
  readonly addresses: Addresses
  readonly service: string
  /** Requests that the worker wants to hold at a time. */
  readonly credit: number
  readonly heartbeatMs: number
}

/** One request that a broker gave. */
export interface Job {
  /** The broker's name for this delivery; it is another one for the next delivery of the same request. */
  readonly token: string
  readonly body: Frames
  /** Sends a part of the answer, or its end. An answer that nobody hears any more is counted and dropped. */
  readonly answer: (final: boolean, body: OutgoingFrames) => Effect.Effect<void>
}

/** A worker that is known to its brokers. */
export interface MajordomoWorker {
  /** Requests as they came, and what is done with them. */
  readonly incoming: Queue.Dequeue<Frames, Cause.Done>
  /** What a request of `incoming` asks for; the job is over with its final answer. */
  readonly job: (frames: Frames) => Job | undefined
  /** Waits until what was answered is with libzmq. */
  readonly flush: Effect.Effect<void>
  /** Asks for no more, and waits until what is held is answered, but no longer than the bound. */
  readonly drain: (boundMs: number) => Effect.Effect<boolean>
  /** From now on nothing is answered: what is still held goes back to the brokers when the scope closes. */
  readonly handBack: Effect.Effect<void>
}

interface Session {
  readonly socket: ZmqSocket
  finals: number
  received: number
  heardAtMs: number
  over: boolean
}

/** Without a sign of life for so many heartbeats a broker is lost. */
const silentBeats = 3

/** Opens the sessions; they end with the scope, telling the brokers. */
export const openMajordomoWorker = Effect.fnUntraced(function*(
  options: MajordomoWorkerOptions
): Effect.fn.Return<MajordomoWorker, TransportError, Scope.Scope> {
  const { credit, heartbeatMs, service, settings } = options
  // The broker takes a worker's word only from the fleet's key.
  const seal = settings.curve === undefined ? (frames: OutgoingFrames) => frames : makeSeal(settings.curve)
  const ready = (room: number) => seal(mdp.ready(service, room))
  // A broker that keeps to the credit never fills it, were all of several to give at once.
  const incoming = yield* Queue.dropping<Frames, Cause.Done>(credit * 16 + 16)
  const origins = new WeakMap<Frames, Session>()
  const sessions = new Set<Session>()
  const none = yield* Latch.make(true)
  let held = 0
  let pausing = false
  let muted = false

  const take = (session: Session, frames: Frames, over: Deferred.Deferred<string>) => {
    const message = readAtWorker(frames)
    if (message === undefined) return Effect.logDebug("a message of a broker that is none of 18/MDP is dropped")
    switch (message._tag) {
      case "Disconnect":
        return Deferred.succeed(over, "the broker does not know this worker")
      case "Heartbeat":
        return message.requests !== undefined && message.requests > session.received
          ? Deferred.succeed(over, "requests were lost on the way")
          : Effect.void
      case "Request":
        session.received++
        // What comes after the pause was on its way; the end of the session gives it back.
        if (pausing) return Effect.void
        origins.set(frames, session)
        if (!Queue.offerUnsafe(incoming, frames)) return Deferred.succeed(over, "the broker gave more than the credit")
        held++
        return none.close
    }
  }

  const beat = Effect.fnUntraced(function*(session: Session, over: Deferred.Deferred<string>) {
    let lastMs = yield* Clock.currentTimeMillis
    while (true) {
      yield* Effect.sleep(heartbeatMs)
      const nowMs = yield* Clock.currentTimeMillis
      // While this process stood still it heard nothing: that time is not held against the broker.
      if (nowMs - lastMs > 2 * heartbeatMs) session.heardAtMs += nowMs - lastMs
      lastMs = nowMs
      if (nowMs - session.heardAtMs > silentBeats * heartbeatMs) return yield* Deferred.succeed(over, "the broker is silent")
      yield* Effect.ignore(session.socket.send(mdp.heartbeat(session.finals)))
    }
  })

  const runSession = Effect.fnUntraced(function*(endpoint: Endpoint) {
    const over = yield* Deferred.make<string>()
    const socket = yield* openZmqSocket(options.zmq, { kind: "dealer", endpoints: [endpoint], settings, sendTimeoutMs: heartbeatMs, lingerMs: settings.lingerMs })
    const session: Session = { socket, finals: 0, received: 0, heardAtMs: yield* Clock.currentTimeMillis, over: false }
    sessions.add(session)
    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        session.over = true
        sessions.delete(session)
        return Effect.ignore(socket.send(mdp.disconnect))
      })
    )
    yield* socket.send(ready(pausing ? 0 : credit))
    yield* Queue.takeAll(socket.incoming).pipe(
      Effect.flatMap(Effect.fnUntraced(function*(batch) {
        session.heardAtMs = yield* Clock.currentTimeMillis
        for (const frames of batch) yield* take(session, frames, over)
      })),
      Effect.forever,
      Effect.ignore,
      Effect.forkScoped
    )
    yield* Effect.forkScoped(beat(session, over))
    yield* Effect.logDebug("the worker looks for its broker again", yield* Deferred.await(over))
    yield* Metric.update(ZmqMetrics.renewedSockets, 1)
  }, Effect.scoped)

  const endpoints = yield* options.addresses
  const outer = yield* Scope.fork(yield* Effect.scope)
  for (const endpoint of endpoints) {
    yield* runSession(endpoint).pipe(
      Effect.catch((error) => Effect.logWarning("a session with a broker could not begin", error.message)),
      Effect.andThen(Effect.sleep(settings.reconnectMs)),
      Effect.forever,
      Effect.forkIn(outer)
    )
  }
  yield* Effect.addFinalizer((exit) => Effect.andThen(Scope.close(outer, exit), Queue.end(incoming)))

  const lost = Metric.update(ZmqMetrics.unroutableReplies, 1)
  return {
    incoming,
    job: (frames) => {
      const session = origins.get(frames)
      const message = readAtWorker(frames)
      if (session === undefined || message?._tag !== "Request") return undefined
      const { body, token } = message
      let ended = false
      return {
        token: token.toString("latin1"),
        body,
        answer: (final, answer) =>
          Effect.suspend(() => {
            if (muted) return Effect.void
            if (session.over) return lost
            if (final) session.finals++
            return Effect.catch(session.socket.send(mdp.answer(token, final, answer)), () => lost)
          }).pipe(Effect.ensuring(Effect.sync(() => {
            if (!final || ended) return
            ended = true
            if (--held === 0) Latch.openUnsafe(none)
          })))
      }
    },
    flush: Effect.suspend(() => Effect.forEach([...sessions], ({ socket }) => socket.flush, { concurrency: "unbounded", discard: true })),
    drain: (boundMs) =>
      Effect.suspend(() => {
        pausing = true
        return Effect.forEach([...sessions], ({ socket }) => Effect.ignore(socket.send(ready(0))), { discard: true })
      }).pipe(
        Effect.andThen(Effect.timeoutOption(Effect.interruptible(none.await), boundMs)),
        Effect.map(() => held === 0)
      ),
    handBack: Effect.sync(() => void (muted = true))
  }
})
