/**
 * `effect/rpc` over ROUTER/DEALER: its two protocols as layers, so that an `RpcGroup` is called across processes, with
 * streams, acknowledgements and interruption as that library has them.
 *
 * Nothing is sent again here: a call whose server goes away fails with `RpcClientError`, and what came of it is not known.
 * A peer is gone when it was silent for `silenceMax`; both sides ask for a sign of life before.
 */
import type { TransportError } from "@purser/core"
import { Clock, type Duration, Effect, Exit, Layer, Metric, Queue, Result, Scope } from "effect"
import { RpcClient, RpcClientError, type RpcMessage, RpcSerialization, RpcServer } from "effect/rpc"
import { senderOf } from "./internal/frameSeal.ts"
import { loadZeromq } from "./internal/native.ts"
import { labelOf, millis, readEndpoints, settingsOf } from "./internal/patternOptions.ts"
import type { PatternOptions } from "./PatternOptions.ts"
import { ZmqMetrics } from "./ZmqMetrics.ts"
import { openZmqSocket, type ZmqSocket } from "./ZmqSocket.ts"

/** What both sides take. */
export interface ZmqRpcOptions extends Omit<PatternOptions, "wire"> {
  /** How often a side asks for a sign of life (1 second). */
  readonly pingInterval?: Duration.Input | undefined
  /** A peer that was silent for so long is gone (5 seconds). */
  readonly silenceMax?: Duration.Input | undefined
}

/** Clients that a server serves at a time; the silent ones leave first. */
const peersMax = 10_000

const { codecFor } = RpcSerialization.json
const isMessage = (value: unknown): value is { readonly _tag: string } => typeof value === "object" && value !== null && "_tag" in value && typeof value._tag === "string"

/** A message that is not one of the protocol's is dropped; its own fields are the business of the library's codecs. */
const read = (body: Uint8Array | undefined): { readonly _tag: string } | undefined =>
  Result.getOrUndefined(Result.filterOrFail(Result.try({ try: (): unknown => JSON.parse(String(body)), catch: () => undefined }), isMessage, () => undefined))

/** What a message may do at worst is to be for nothing: one that the library dies of must not end the reading. */
const outlived = (handle: () => Effect.Effect<void>, instead: (defect: unknown) => Effect.Effect<void> = () => Effect.void): Effect.Effect<void> =>
  Effect.catchDefect(Effect.suspend(handle), (defect) => Effect.andThen(Effect.logWarning("a message cannot be handled", String(defect)), instead(defect)))

const timesOf = (options: ZmqRpcOptions) => ({ pingMs: millis(options.pingInterval ?? "1 second"), silenceMs: millis(options.silenceMax ?? "5 seconds") })

const makeClient = Effect.fnUntraced(function*(options: ZmqRpcOptions) {
  const endpoints = yield* readEndpoints(options, "connect")
  const zmq = yield* loadZeromq
  const { pingMs, silenceMs } = timesOf(options)
  const label = labelOf(endpoints)
  return yield* RpcClient.Protocol.make(Effect.fnUntraced(function*(write, clientIds) {
    const scope = yield* Effect.scope
    const calls = new Map<string | number, number>()
    let heardMs = yield* Clock.currentTimeMillis
    let life: { readonly socket: ZmqSocket; readonly scope: Scope.Closeable } | undefined

    const receive = (message: { readonly _tag: string }) => {
      const response = message as RpcMessage.FromServerEncoded
      if (response._tag === "Pong") return Effect.void
      // The library forgets its calls before it reads the defect, so that one without any would leave them waiting.
      if (response._tag === "Defect" && response.defect === undefined) return failAll("the server says that it failed, and not how")
      if (!("requestId" in response)) return Effect.forEach([...clientIds], (id) => write(id, response), { discard: true })
      const clientId = calls.get(response.requestId)
      if (response._tag === "Exit") calls.delete(response.requestId)
      return clientId === undefined ? Effect.void : write(clientId, response)
    }
    const gone = (detail: string) => new RpcClientError.RpcClientError({ reason: new RpcClientError.RpcClientDefect({ message: `${label}: ${detail}`, cause: detail }) })
    const failAll = (detail: string) =>
      Effect.suspend(() => {
        calls.clear()
        const error = gone(detail)
        return Effect.forEach([...clientIds], (id) => write(id, { _tag: "ClientProtocolError", error }), { discard: true })
      })
    const open = Effect.gen(function*() {
      if (life !== undefined) return life.socket
      const own = yield* Scope.fork(scope)
      const socket = yield* Scope.provide(
        openZmqSocket(zmq, { kind: "dealer", seals: true, endpoints, settings: settingsOf(options), sendTimeoutMs: silenceMs, lingerMs: 0 }),
        own
      )
      life = { socket, scope: own }
      yield* Effect.forkIn(
        Effect.forever(Effect.flatMap(Queue.take(socket.incoming), (frames) =>
          Effect.gen(function*() {
            heardMs = yield* Clock.currentTimeMillis
            const message = read(frames[frames.length - 1])
            if (message !== undefined) yield* outlived(() => receive(message), () => failAll("an answer cannot be handled"))
          }))).pipe(Effect.ignore),
        own
      )
      return socket
    }).pipe(Effect.uninterruptible)
    const put = (message: RpcMessage.FromClientEncoded) =>
      Effect.mapError(Effect.flatMap(open, (socket) => socket.send([JSON.stringify(message)])), (error) => gone(error.message))

    const ask = Effect.gen(function*() {
      const nowMs = yield* Clock.currentTimeMillis
      if (calls.size === 0) {
        heardMs = nowMs
        return
      }
      if (nowMs - heardMs <= silenceMs) return yield* Effect.ignore(put({ _tag: "Ping" }))
      const old = life
      life = undefined
      heardMs = nowMs
      if (old !== undefined) yield* Scope.close(old.scope, Exit.void)
      yield* failAll(`nothing was heard for ${silenceMs} ms`)
    })
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(pingMs), ask)))

    return {
      send: (clientId, message) =>
        Effect.suspend(() => {
          if (message._tag === "Request") calls.set(message.id, clientId)
          return put(message)
        }),
      supportsAck: true,
      supportsTransferables: false,
      codecFor
    }
  }))
})

const makeServer = Effect.fnUntraced(function*(options: ZmqRpcOptions) {
  const endpoints = yield* readEndpoints(options, "bind")
  const zmq = yield* loadZeromq
  const { pingMs, silenceMs } = timesOf(options)
  const settings = settingsOf(options)
  const socket = yield* openZmqSocket(zmq, { kind: "router", endpoints, settings, sendTimeoutMs: 0, lingerMs: settings.lingerMs })
  const disconnects = yield* Queue.make<number>()
  const ids = new Map<string, number>()
  const peers = new Map<number, { readonly key: string; readonly frame: Uint8Array; heardMs: number }>()
  let next = 0

  const forget = (id: number) =>
    Effect.suspend(() => {
      const peer = peers.get(id)
      if (peer === undefined) return Effect.void
      peers.delete(id)
      ids.delete(peer.key)
      return Effect.asVoid(Queue.offer(disconnects, id))
    })
  const sweep = Effect.flatMap(Clock.currentTimeMillis, (nowMs) =>
    Effect.forEach([...peers], ([id, { heardMs }]) => nowMs - heardMs > silenceMs ? forget(id) : Effect.void, { discard: true }))
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(pingMs), sweep)))

  const send = (id: number, message: RpcMessage.FromServerEncoded) =>
    Effect.suspend(() => {
      const peer = peers.get(id)
      // A peer that is gone has nobody who waits.
      return peer === undefined ? Effect.void : Effect.catch(socket.send([peer.frame, JSON.stringify(message)]), () => forget(id))
    })

  return yield* RpcServer.Protocol.make(Effect.fnUntraced(function*(write) {
    const take = Effect.fnUntraced(function*(frame: Uint8Array, body: Uint8Array | undefined) {
      const message = read(body)
      if (message === undefined) return
      const key = Buffer.from(frame).toString("latin1")
      const nowMs = yield* Clock.currentTimeMillis
      let id = ids.get(key)
      if (id === undefined) {
        if (peers.size >= peersMax) return yield* Metric.update(ZmqMetrics.refusedRequests, 1)
        id = next++
        ids.set(key, id)
        peers.set(id, { key, frame, heardMs: nowMs })
      }
      peers.get(id)!.heardMs = nowMs
      if (message._tag === "Ping") return yield* send(id, { _tag: "Pong" })
      // Whoever sent it fails with all its calls, instead of waiting for an answer.
      yield* outlived(() => write(id, message as RpcMessage.FromClientEncoded), () => send(id, { _tag: "Defect", defect: "the message cannot be handled" }))
    })
    yield* Effect.forkScoped(Queue.take(socket.incoming).pipe(
      Effect.flatMap((frames) =>
        senderOf(frames).refused !== null
          ? Metric.update(ZmqMetrics.refusedPeers, 1)
          : frames[0] === undefined ? Effect.void : take(frames[0], frames[frames.length - 1])),
      Effect.forever,
      Effect.ignore
    ))
    return {
      disconnects,
      send,
      end: () => Effect.void,
      clientIds: Effect.sync(() => new Set(peers.keys())),
      initialMessage: Effect.succeedNone,
      supportsAck: true,
      supportsTransferables: false,
      supportsSpanPropagation: true,
      supportsNotifications: true,
      codecFor
    }
  }))
})

/** The protocols as layers: a client connects to its servers, a server binds. Settings as `RouterDealer`'s sockets have them. */
export const ZmqRpc = {
  layerClientProtocol: (options: ZmqRpcOptions): Layer.Layer<RpcClient.Protocol, TransportError> => Layer.effect(RpcClient.Protocol, makeClient(options)),
  layerServerProtocol: (options: ZmqRpcOptions): Layer.Layer<RpcServer.Protocol, TransportError> => Layer.effect(RpcServer.Protocol, makeServer(options))
} as const
