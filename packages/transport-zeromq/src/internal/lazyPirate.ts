/**
 * One REQ socket of the Lazy Pirate pattern: send, wait, and after silence throw the socket away.
 *
 * A REQ socket that waits for an answer can do nothing else, and a late answer would be taken for the next request's.
 * So every attempt that does not end with an accepted answer, also an interrupted one, closes the socket; the next
 * attempt opens another one, under another routing id, to which the late answer cannot be sent.
 *
 * An attempt at a socket that is there already can do without a fiber (`askNow`).
 */
import { RequestTimeout, TransportError, Unauthorized } from "@purser/core"
import { Effect, Exit, Metric, Scope } from "effect"
import type { Endpoint } from "../Endpoint.ts"
import type { SocketSettings } from "../SocketSettings.ts"
import { ZmqMetrics } from "../ZmqMetrics.ts"
import { type Frames, openZmqSocket, type ZmqSocket } from "../ZmqSocket.ts"
import type { Addresses } from "./addresses.ts"
import type { Zeromq } from "./native.ts"

/** How a Lazy Pirate finds and treats its servers. */
export interface LazyPirateOptions {
  readonly zmq: Zeromq
  readonly addresses: Addresses
  readonly settings: SocketSettings
  /** Whether messages name their sender. */
  readonly seals: boolean
  /** Milliseconds that one attempt may take, the connection included. */
  readonly timeoutMs: number
  /** What errors call the servers. */
  readonly label: string
}

/** One REQ socket at a time. Not for concurrent use. */
export interface LazyPirate {
  /** One attempt. `encode` gets the id of the socket's life; a failing `accept` counts as no answer. */
  readonly ask: <A, E>(
    attempt: number,
    encode: (client: string) => string,
    accept: (frames: Frames) => Effect.Effect<A, E>
  ) => Effect.Effect<A, E | TransportError>
  /**
   * One attempt at the socket that is there, and false without one. `heard` is told of the answer, or why nothing was sent,
   * unless the socket is thrown away before. Deadlines are the caller's, and whoever does not accept an answer recycles.
   */
  readonly askNow: (encode: (client: string) => string, heard: (answer: Frames | TransportError) => void) => boolean
  /** Throws the socket away. */
  readonly recycle: Effect.Effect<void>
  /** What an attempt without an answer in time is called. */
  readonly timedOut: (attempt: number) => TransportError
}

interface Life {
  readonly socket: ZmqSocket
  readonly scope: Scope.Closeable
  readonly endpoints: ReadonlyArray<Endpoint>
}

/** Makes a Lazy Pirate without a socket; the first attempt opens one, and the maker recycles at the end. */
export const makeLazyPirate = (options: LazyPirateOptions): LazyPirate => {
  let life: Life | undefined
  /** Waits for the answer of the present life. */
  let listener: ((answer: Frames | TransportError) => void) | undefined
  const fixed = Exit.isExit(options.addresses) && Exit.isSuccess(options.addresses) ? options.addresses.value : undefined

  const tell = (answer: Frames | TransportError) => {
    const told = listener
    listener = undefined
    told?.(answer)
  }
  /** Counts what is asked and given up: who waits for something meanwhile sees whether it still matters. */
  let turn = 0
  const drop = Effect.suspend(() => {
    const old = life
    life = undefined
    return old === undefined ? Effect.void : Scope.close(old.scope, Exit.void)
  })
  const recycle = Effect.suspend(() => {
    listener = undefined
    turn++
    return drop
  })
  // A server that refuses this side's key has got nothing: the attempt is over, and its message goes with the socket.
  const watch = Effect.fnUntraced(function*({ admission }: ZmqSocket, scope: Scope.Closeable) {
    const detail = yield* admission.refused
    if (detail === undefined || life?.scope !== scope) return
    const asked = turn
    yield* drop
    if ((yield* admission.denied) && turn === asked) tell(new TransportError({ reason: new Unauthorized({ detail }), chargeKey: null }))
  })

  const open = Effect.fnUntraced(function*(endpoints: ReadonlyArray<Endpoint>) {
    if (life?.endpoints === endpoints) return life.socket
    yield* recycle
    const scope = yield* Scope.make()
    // Linger 0: what is still unsent belongs to an attempt that has been given up.
    const socket: ZmqSocket = yield* openZmqSocket(options.zmq, {
      kind: "request",
      seals: options.seals,
      endpoints,
      settings: options.settings,
      // Later than the attempt's own deadline, which closes the socket and so ends the wait for a peer.
      sendTimeoutMs: options.timeoutMs + 1000,
      lingerMs: 0,
      hear: (batch, more) => {
        for (const frames of batch) if (life?.scope === scope) tell(frames)
        more()
      }
    }).pipe(Scope.provide(scope), Effect.onError(() => Scope.close(scope, Exit.void)))
    life = { socket, scope, endpoints }
    yield* Effect.forkDetach(watch(socket, scope))
    return socket
  }, Effect.uninterruptible)

  const put = (socket: ZmqSocket, encode: (client: string) => string, heard: (answer: Frames | TransportError) => void) => {
    listener = heard
    turn++
    socket.post([encode(socket.routingId)], (error) => {
      if (error !== undefined && life?.socket === socket) tell(error)
    })
  }
  const timedOut = (attempt: number) =>
    new TransportError({ reason: new RequestTimeout({ endpoint: options.label, attempt, timeoutMs: options.timeoutMs }), chargeKey: null })

  return {
    recycle,
    timedOut,
    askNow: (encode, heard) => {
      if (life === undefined || life.endpoints !== fixed) return false
      put(life.socket, encode, heard)
      return true
    },
    ask: (attempt, encode, accept) =>
      Effect.gen(function*() {
        const socket = yield* open(yield* options.addresses)
        return yield* Effect.callback<Frames, TransportError>((resume) =>
          put(socket, encode, (answer) => resume(answer instanceof TransportError ? Effect.fail(answer) : Effect.succeed(answer)))
        )
      }).pipe(
        Effect.timeoutOrElse({
          duration: options.timeoutMs,
          orElse: () => Effect.andThen(Metric.update(ZmqMetrics.timeouts, 1), Effect.fail(timedOut(attempt)))
        }),
        Effect.flatMap(accept),
        Effect.onExit((exit) => Exit.isSuccess(exit) ? Effect.void : recycle)
      )
  }
}
