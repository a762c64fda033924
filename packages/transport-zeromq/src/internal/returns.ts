/**
 * The second half of PUSH/PULL: a worker's PUSH sockets, one for each producer that it has heard of.
 *
 * A return address comes with a message, from whoever sent it. So it is held to the rules of every endpoint, a worker
 * holds a bounded number of connections, and none of them can hold up another producer's answers.
 */
import { Closed, TransportError } from "@purser/core"
import { Effect, Exit, Result, Scope } from "effect"
import { randomBytes } from "node:crypto"
import type { CurvePublicKey } from "../CurveKey.ts"
import { type Endpoint, isLocalAddress, parseEndpoint } from "../Endpoint.ts"
import type { SocketSettings } from "../SocketSettings.ts"
import { openZmqSocket, type ZmqSocket } from "../ZmqSocket.ts"
import type { Zeromq } from "./native.ts"
import type { WayBack } from "./outbox.ts"

/** Where a producer takes answers in when it was not told: beside its workers. Undefined when they are on other machines. */
export const defaultReturnAddress = (endpoints: ReadonlyArray<Endpoint>): string | undefined => {
  const address = endpoints[0]!.address
  if (!endpoints.every((endpoint) => isLocalAddress(endpoint.address))) return undefined
  if (address.startsWith("inproc://")) return `inproc://purser-return-${randomBytes(16).toString("hex")}`
  if (address.startsWith("ipc://")) return "ipc://*"
  return address.startsWith("tcp://[") ? "tcp://[::1]:*" : "tcp://127.0.0.1:*"
}

/** Two peers that name one address do not share a connection: it is to the holder of one key. */
const keyOf = (address: string, peerKey: CurvePublicKey | null) => peerKey === null ? address : `${address} ${peerKey}`

/** What the sockets need. */
export interface ReturnsOptions {
  readonly zmq: Zeromq
  readonly settings: SocketSettings
  readonly allowPlain: boolean
  readonly label: string
  /** Where answers to messages without a return address go. */
  readonly acknowledge: Endpoint | undefined
  readonly producersMax: number
  /** A frame in front of each answer to a return address. */
  readonly speaker?: string | undefined
}

/** A worker's ways back. */
export interface Returns {
  /** The way back of a message that names its return address; with CURVE only the holder of the key that sealed it gets the answer. */
  readonly to: (address: string, peerKey: CurvePublicKey | null) => Effect.Effect<Result.Result<WayBack, TransportError>>
  /** The same, of a producer that is connected already; undefined of others. */
  readonly known: (address: string, peerKey: CurvePublicKey | null) => WayBack | undefined
  /** The way back of a message that names none. */
  readonly acknowledge: Result.Result<WayBack, TransportError>
  readonly flush: Effect.Effect<void>
}

interface Producer {
  readonly socket: ZmqSocket
  readonly scope: Scope.Closeable
  readonly back: WayBack
}

/** Makes the ways back; their sockets are opened when they are first needed, and closed with the scope. */
export const openReturns = Effect.fnUntraced(function*(options: ReturnsOptions): Effect.fn.Return<Returns, TransportError, Scope.Scope> {
  const { settings } = options
  const before = options.speaker === undefined ? [] : [options.speaker]
  // Made now, so that it closes after a server's drain, which the scopes of later sockets would not.
  const outer = yield* Scope.make()
  yield* Effect.addFinalizer((exit) => Scope.close(outer, exit))
  /** In the order of use, so that the first one is the one that has been silent for the longest. */
  const producers = new Map<string, Producer>()
  /** The key of the last one. */
  let latest: string | undefined
  const run = Effect.runForkWith(yield* Effect.context<never>())

  // A full or absent producer fails a send at once: it must not hold up the others.
  const open = (endpoint: Endpoint, peerKey: CurvePublicKey | null) =>
    openZmqSocket(options.zmq, {
      kind: "push",
      endpoints: [endpoint],
      settings,
      sendTimeoutMs: 0,
      lingerMs: settings.lingerMs,
      peerKey: peerKey ?? undefined
    })

  const add = (key: string, one: Producer) => {
    producers.set(key, one)
    latest = key
  }
  const use = (key: string): Producer | undefined => {
    const known = producers.get(key)
    if (known === undefined || latest === key) return known
    producers.delete(key)
    add(key, known)
    return known
  }
  const producer = Effect.fnUntraced(function*(endpoint: Endpoint, peerKey: CurvePublicKey | null) {
    const key = keyOf(endpoint.address, peerKey)
    const known = use(key)
    if (known !== undefined) return known.socket
    for (const [oldest, { scope }] of producers) {
      if (producers.size < options.producersMax) break
      producers.delete(oldest)
      yield* Scope.close(scope, Exit.void)
    }
    const scope = yield* Scope.fork(outer)
    const socket = yield* Scope.provide(open(endpoint, peerKey), scope)
    add(key, { socket, scope, back: wayBack(endpoint, peerKey) })
    return socket
  }, Effect.uninterruptible)

  // An in-process connection does not come back by itself: whoever is at the address later is reached by another socket.
  const forget = (key: string, socket: ZmqSocket) =>
    Effect.suspend(() => {
      const known = producers.get(key)
      if (known === undefined || known.socket !== socket) return Effect.void
      producers.delete(key)
      return Scope.close(known.scope, Exit.void)
    })

  const wayBack = (endpoint: Endpoint, peerKey: CurvePublicKey | null): WayBack => {
    const key = keyOf(endpoint.address, peerKey)
    return {
      key,
      whole: false,
      // Looked up when the answer is there: the producer may have made room for others since, and come back.
      send: (text) => Effect.flatMap(producer(endpoint, peerKey), (socket) => Effect.tapError(socket.send([...before, text]), () => forget(key, socket))),
      post: (text, posted) => {
        const socket = use(key)?.socket
        socket?.post([...before, text], (error) => {
          if (error !== undefined) run(forget(key, socket))
          posted(error)
        })
        return socket !== undefined
      }
    }
  }

  const plain = options.acknowledge === undefined ? undefined : yield* open(options.acknowledge, null)
  const noAnswer = new TransportError({ reason: new Closed({ endpoint: options.label, detail: "no acknowledgement endpoint is set" }), chargeKey: null })
  return {
    acknowledge: Result.succeed({
      key: "",
      whole: true,
      send: (text) => plain === undefined ? Effect.fail(noAnswer) : plain.send([text])
    }),
    to: Effect.fnUntraced(function*(address, peerKey) {
      const parsed = parseEndpoint(address, { attach: "connect", allowPlain: options.allowPlain })
      if (Result.isFailure(parsed)) return Result.fail(parsed.failure)
      const endpoint = parsed.success
      if (endpoint.attach === "bind" || endpoint.address.endsWith("*")) {
        return Result.fail(new TransportError({ reason: new Closed({ endpoint: address, detail: "not a return address" }), chargeKey: null }))
      }
      return yield* Effect.result(Effect.as(producer(endpoint, peerKey), wayBack(endpoint, peerKey)))
    }),
    known: (address, peerKey) => use(keyOf(address, peerKey))?.back,
    flush: Effect.suspend(() => Effect.forEach([...producers.values()], ({ socket }) => socket.flush, { concurrency: "unbounded", discard: true })).pipe(
      Effect.andThen(Effect.suspend(() => plain?.flush ?? Effect.void))
    )
  }
})
