/**
 * Devices between peers that do not know each other: they pass messages on between two sockets and look at none of them,
 * so that any protocol of these patterns goes through.
 *
 * A device is a stable address and nothing more. What it holds when it dies is lost, and its peers' deadlines find it. It
 * occupies one thread of Node's pool of four for as long as it runs, so that several of them, or one beside work on files,
 * belong into processes of their own: `purser forwarder`.
 */
import { Closed, TransportError } from "@purser/core"
import { Config, Context, Effect, Fiber, Layer, Option, Schedule, type Scope } from "effect"
import type * as Addon from "zeromq"
import { curveConfig } from "./CurveSettings.ts"
import { type Endpoint, parseEndpoints } from "./Endpoint.ts"
import { loadZeromq, nativeError, openError, type Zeromq } from "./internal/native.ts"
import { labelOf, mayBeRemote, settingsOf } from "./internal/patternOptions.ts"
import { securityOf } from "./internal/security.ts"
import type { PatternOptions } from "./PatternOptions.ts"
import type { SocketSettings } from "./SocketSettings.ts"

/**
 * What is between the two sides. `queue`: clients (REQ, DEALER) at the front, servers (REP, ROUTER) at the back, answers
 * come back the same way. `streamer`: PUSH at the front, PULL at the back. `forwarder`: publishers at the front,
 * subscribers at the back, whose subscriptions go through.
 */
export type ForwarderDevice = "queue" | "streamer" | "forwarder"

/** The devices. */
export const forwarderDevices = ["queue", "streamer", "forwarder"] as const satisfies ReadonlyArray<ForwarderDevice>

/** What a device takes. Both sides bind unless an address begins with `>`. */
export interface ForwarderOptions extends Pick<PatternOptions, "allowPlain" | "socket"> {
  readonly device: ForwarderDevice
  /** Where clients, producers or publishers connect. */
  readonly frontend: string | ReadonlyArray<string>
  /** Where servers, workers or subscribers connect. */
  readonly backend: string | ReadonlyArray<string>
}

type Pair = readonly [front: Addon.Socket, back: Addon.Socket]
type Construct = (zmq: Zeromq, settings: SocketSettings, front: Addon.SocketOptions<Addon.Router>, back: Addon.SocketOptions<Addon.Dealer>) => Pair

const limits = (settings: SocketSettings) => ({ sendHighWaterMark: settings.highWaterMark, receiveHighWaterMark: settings.highWaterMark })
const receiving = (settings: SocketSettings) => ({ receiveHighWaterMark: settings.highWaterMark })
const sending = (settings: SocketSettings) => ({ sendHighWaterMark: settings.highWaterMark })

const constructors: Record<ForwarderDevice, Construct> = {
  // Not mandatory: an answer to a client that is gone is dropped, where a mandatory one would end the device.
  queue: (zmq, settings, front, back) => [new zmq.Router({ ...front, ...limits(settings), handover: true }), new zmq.Dealer({ ...back, ...limits(settings) })],
  streamer: (zmq, settings, front, back) => [new zmq.Pull({ ...front, ...receiving(settings) }), new zmq.Push({ ...back, ...sending(settings) })],
  forwarder: (zmq, settings, front, back) => [new zmq.XSubscriber({ ...front, ...limits(settings) }), new zmq.XPublisher({ ...back, ...limits(settings) })]
}

const attach = Effect.fnUntraced(function*(socket: Addon.Socket, endpoints: ReadonlyArray<Endpoint>, settings: SocketSettings) {
  const bound: Array<string> = []
  for (const { address, attach } of endpoints) {
    if (attach === "connect") {
      yield* Effect.try({ try: () => socket.connect(address), catch: (error) => openError(nativeError(error), address) })
      continue
    }
    yield* Effect.tryPromise({ try: () => socket.bind(address), catch: nativeError }).pipe(
      Effect.retry({ while: ({ code }) => code === "EADDRINUSE", schedule: Schedule.spaced(50).pipe(Schedule.upTo({ duration: settings.bindWaitMs })) }),
      Effect.mapError((error) => openError(error, address))
    )
    bound.push(socket.lastEndpoint ?? address)
  }
  return bound
})

/** Opens a device that runs until the scope closes. */
const open = Effect.fnUntraced(function*(options: ForwarderOptions): Effect.fn.Return<Forwarder["Service"], TransportError, Scope.Scope> {
  const rules = { attach: "bind", allowPlain: mayBeRemote(options) } as const
  const [frontend, backend] = yield* Effect.all([Effect.fromResult(parseEndpoints(options.frontend, rules)), Effect.fromResult(parseEndpoints(options.backend, rules))])
  const settings = settingsOf(options)
  const label = `${labelOf(frontend)} to ${labelOf(backend)}`
  const zmq = yield* loadZeromq
  const common = {
    linger: settings.lingerMs,
    heartbeatInterval: settings.heartbeatIntervalMs,
    heartbeatTimeout: settings.heartbeatTimeoutMs,
    heartbeatTimeToLive: settings.heartbeatTimeoutMs,
    reconnectInterval: settings.reconnectMs,
    reconnectMaxInterval: settings.reconnectMaxMs,
    maxMessageSize: settings.messageMaxBytes,
    tcpKeepalive: 1
  }
  const sideOf = (endpoints: ReadonlyArray<Endpoint>) =>
    Effect.map(securityOf(zmq, { endpoints, settings }), (security) => ({ ...common, ...security, ipv6: endpoints.some(({ ipv6 }) => ipv6) }))
  const [front, back] = yield* Effect.all([sideOf(frontend), sideOf(backend)])
  const [frontSocket, backSocket] = yield* Effect.acquireRelease(
    Effect.try({ try: () => constructors[options.device](zmq, settings, front, back), catch: (error) => openError(nativeError(error), label) }),
    // Closing twice does nothing.
    (sockets) => Effect.sync(() => sockets.forEach((socket) => socket.close()))
  )
  const boundFront = yield* attach(frontSocket, frontend, settings)
  const boundBack = yield* attach(backSocket, backend, settings)

  const proxy = new zmq.Proxy(frontSocket, backSocket)
  const running = yield* Effect.forkDetach(Effect.tryPromise({ try: () => proxy.run(), catch: nativeError }))
  const ended = (detail: string) => new TransportError({ reason: new Closed({ endpoint: label, detail }), chargeKey: null })
  yield* Effect.addFinalizer(() =>
    // It fails when the device has ended by itself, which `ended` tells.
    Effect.ignore(Effect.try({ try: () => proxy.terminate(), catch: nativeError })).pipe(Effect.andThen(Fiber.await(running)))
  )
  return Forwarder.of({
    frontend: boundFront,
    backend: boundBack,
    ended: Fiber.join(running).pipe(
      Effect.matchEffect({ onFailure: ({ code }) => Effect.fail(ended(code)), onSuccess: () => Effect.fail(ended("the device has ended")) })
    )
  })
})

const settings = Config.all({
  device: Config.Literals(forwarderDevices, "PURSER_FORWARDER_DEVICE").pipe(Config.withDefault("queue" as const)),
  frontend: Config.String("PURSER_FORWARDER_FRONTEND").pipe(Config.withDefault("tcp://127.0.0.1:5555")),
  backend: Config.String("PURSER_FORWARDER_BACKEND").pipe(Config.withDefault("tcp://127.0.0.1:5556")),
  allowPlain: Config.Boolean("PURSER_ALLOW_PLAIN").pipe(Config.withDefault(false)),
  highWaterMark: Config.option(Config.Int("PURSER_FORWARDER_QUEUE"))
})

/** A device that runs as long as its layer is there. */
export class Forwarder extends Context.Service<Forwarder, {
  /** The addresses that were bound, with the port that a wildcard got. */
  readonly frontend: ReadonlyArray<string>
  readonly backend: ReadonlyArray<string>
  /** Fails with `Closed` when the device ends by itself. */
  readonly ended: Effect.Effect<never, TransportError>
}>()("@purser/transport-zeromq/Forwarder") {
  /** Opens a device in the present scope. */
  static readonly open = open
  static readonly layer = (options: ForwarderOptions): Layer.Layer<Forwarder, TransportError> => Layer.effect(Forwarder, open(options))
  /** With the configuration's settings. */
  static readonly layerConfig: Layer.Layer<Forwarder, TransportError | Config.ConfigError> = Layer.effect(
    Forwarder,
    Effect.gen(function*() {
      const { highWaterMark, ...options } = yield* settings
      const curve = yield* curveConfig
      return yield* open({ ...options, socket: { curve, ...(Option.isSome(highWaterMark) ? { highWaterMark: highWaterMark.value } : {}) } })
    })
  )
}
