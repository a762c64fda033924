/**
 * Devices between peers that do not know each other: they pass messages on between two sockets and look at none of them,
 * so that any protocol of these patterns goes through.
 *
 * A device is a stable address and nothing more: what it holds when it dies is lost, and its peers' deadlines find it. The
 * loop is ours and not libzmq's proxy, which occupies one thread of Node's pool of four for as long as it runs, and which
 * cannot be ended before that thread has begun. Where other work blocks the process it stands still with it:
 * `purser forwarder` is a process of its own.
 */
import { Closed, TransportError } from "@purser/core"
import { Config, Context, Deferred, Effect, Layer, Metric, Option, type Scope } from "effect"
import type * as Addon from "zeromq"
import { curveConfig } from "./CurveSettings.ts"
import { type Endpoint, parseEndpoints } from "./Endpoint.ts"
import { bindSocket } from "./internal/bindSocket.ts"
import { loadZeromq, nativeError, openError, type Zeromq } from "./internal/native.ts"
import { commonOptions, labelOf, mayBeRemote, settingsOf } from "./internal/patternOptions.ts"
import { securityOf } from "./internal/security.ts"
import type { PatternOptions } from "./PatternOptions.ts"
import type { SocketSettings } from "./SocketSettings.ts"
import { ZmqMetrics } from "./ZmqMetrics.ts"

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

type Receiver = Addon.Router | Addon.Dealer | Addon.Pull | Addon.XSubscriber | Addon.XPublisher
type Sender = Addon.Router | Addon.Dealer | Addon.Push | Addon.XSubscriber | Addon.XPublisher
/** `ways`: from which socket to which messages go. */
interface Pair {
  readonly front: Addon.Socket
  readonly back: Addon.Socket
  readonly ways: ReadonlyArray<readonly [from: Receiver, to: Sender]>
}
type Construct = (zmq: Zeromq, settings: SocketSettings, front: Addon.SocketOptions<Addon.Router>, back: Addon.SocketOptions<Addon.Dealer>) => Pair

const limits = (settings: SocketSettings) => ({ ...receiving(settings), ...sending(settings) })
const receiving = (settings: SocketSettings) => ({ receiveHighWaterMark: settings.highWaterMark })
const sending = (settings: SocketSettings) => ({ sendHighWaterMark: settings.highWaterMark })

const constructors: Record<ForwarderDevice, Construct> = {
  queue: (zmq, settings, frontOptions, backOptions) => {
    // Answers never wait: one client that is gone, or takes no more, must not hold up the others.
    const front = new zmq.Router({ ...frontOptions, ...limits(settings), handover: true, mandatory: true, sendTimeout: 0 })
    const back = new zmq.Dealer({ ...backOptions, ...limits(settings) })
    return { front, back, ways: [[front, back], [back, front]] }
  },
  streamer: (zmq, settings, frontOptions, backOptions) => {
    const front = new zmq.Pull({ ...frontOptions, ...receiving(settings) })
    const back = new zmq.Push({ ...backOptions, ...sending(settings) })
    return { front, back, ways: [[front, back]] }
  },
  forwarder: (zmq, settings, frontOptions, backOptions) => {
    const front = new zmq.XSubscriber({ ...frontOptions, ...limits(settings) })
    const back = new zmq.XPublisher({ ...backOptions, ...limits(settings) })
    return { front, back, ways: [[front, back], [back, front]] }
  }
}

const batchMax = 256
const foundNobody = (error: unknown) => ["EAGAIN", "EHOSTUNREACH"].includes(nativeError(error).code)

/** Passes on one message, and what else is there already; gives how many found nobody. Where nobody takes more, it waits: the pressure goes back. */
const passBatch = (from: Receiver, to: Sender, left = batchMax, lost = 0): Promise<number> =>
  from.receive().then((frames) => to.send(frames).then(() => lost, (error: unknown) => to.closed || !foundNobody(error) ? Promise.reject(error) : lost + 1))
    .then((all) => from.readable && left > 1 ? passBatch(from, to, left - 1, all) : all)

const attach = Effect.fnUntraced(function*(socket: Addon.Socket, endpoints: ReadonlyArray<Endpoint>, settings: SocketSettings) {
  const bound: Array<string> = []
  for (const { address, attach } of endpoints) {
    if (attach === "connect") {
      yield* Effect.try({ try: () => socket.connect(address), catch: (error) => openError(nativeError(error), address) })
      continue
    }
    bound.push(yield* bindSocket(socket, address, settings))
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
  const common = { ...commonOptions(settings), linger: settings.lingerMs }
  const sideOf = (endpoints: ReadonlyArray<Endpoint>) =>
    Effect.map(securityOf(zmq, { endpoints, settings }), (security) => ({ ...common, ...security, ipv6: endpoints.some(({ ipv6 }) => ipv6) }))
  const [front, back] = yield* Effect.all([sideOf(frontend), sideOf(backend)])
  const pair = yield* Effect.acquireRelease(
    Effect.try({ try: () => constructors[options.device](zmq, settings, front, back), catch: (error) => openError(nativeError(error), label) }),
    ({ back, front }) =>
      Effect.sync(() => {
        front.close()
        back.close()
      })
  )
  const boundFront = yield* attach(pair.front, frontend, settings)
  const boundBack = yield* attach(pair.back, backend, settings)

  const ended = yield* Deferred.make<never, TransportError>()
  for (const [from, to] of pair.ways) {
    yield* Effect.tryPromise({ try: () => passBatch(from, to), catch: nativeError }).pipe(
      Effect.flatMap((lost) => lost === 0 ? Effect.void : Metric.update(ZmqMetrics.unroutableReplies, lost)),
      // The addon also rejects for a wake-up without a message; only a closed socket is the end.
      Effect.catch((error) => from.closed || to.closed ? Effect.fail(error) : Effect.logDebug("receive again", error.code)),
      Effect.forever,
      Effect.catch(({ code }) => Deferred.fail(ended, new TransportError({ reason: new Closed({ endpoint: label, detail: code }), chargeKey: null }))),
      Effect.forkDetach
    )
  }
  return Forwarder.of({ frontend: boundFront, backend: boundBack, ended: Deferred.await(ended) })
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
