/**
 * One ZeroMQ socket for the length of a scope: one reader for the socket's whole life, one writer.
 *
 * A pending receive is never given up while the socket lives, because the addon would hand the next message to the
 * abandoned call: stopping means closing. The routing id is a fresh UUID for each socket, because libzmq numbers peers
 * alike in every process, so that a late answer could reach another one. State is kept here, never on the addon's objects.
 */
import type { TransportError } from "@purser/core"
import { type Cause, Effect, Metric, Queue, type Scope } from "effect"
import { randomUUID } from "node:crypto"
import type { Dealer, Event, Message, Pair, Publisher, Pull, Push, Request, Router, Subscriber, XPublisher } from "zeromq"
import type { Endpoint } from "./Endpoint.ts"
import type { CurvePublicKey } from "./CurveKey.ts"
import { type Admission, makeAdmission } from "./internal/admission.ts"
import { bindSocket } from "./internal/bindSocket.ts"
import { makeSeal, makeUnseal } from "./internal/frameSeal.ts"
import { nativeError, openError, sendError, type Zeromq } from "./internal/native.ts"
import { observe } from "./internal/observe.ts"
import { commonOptions } from "./internal/patternOptions.ts"
import { type Security, securityOf } from "./internal/security.ts"
import { makeSocketWriter, type Posted } from "./internal/socketWriter.ts"
import type { SocketSettings } from "./SocketSettings.ts"
import { ZmqMetrics } from "./ZmqMetrics.ts"

/** The frames of one received message. */
export type Frames = ReadonlyArray<Message>

/** The frames of a message to send. Bytes must not be changed afterwards: the addon sends from them. */
export type OutgoingFrames = ReadonlyArray<string | Uint8Array>

/** A socket that is open until its scope closes. */
export interface ZmqSocket {
  /** This socket's identity at its peers; never used twice. */
  readonly routingId: string
  /** The addresses that were bound, with the port that a wildcard got. */
  readonly bound: ReadonlyArray<string>
  /** Received messages in order; done when the socket has closed. */
  readonly incoming: Queue.Dequeue<Frames, Cause.Done>
  /** Succeeds when libzmq took the message. `Backpressure`, `PeerUnreachable` and `Closed` mean that it did not. */
  readonly send: (frames: OutgoingFrames) => Effect.Effect<void, TransportError>
  /** The same without a fiber. */
  readonly post: (frames: OutgoingFrames, posted: Posted) => void
  /** Waits until the messages of earlier calls of `send` are with libzmq. */
  readonly flush: Effect.Effect<void>
  /** Connects to what is new in the list and disconnects from what is no longer in it; bound addresses stay. */
  readonly reach: (endpoints: ReadonlyArray<Endpoint>) => Effect.Effect<void, TransportError>
  /** Whether the peers that it connects to let its key in. */
  readonly admission: Admission
}

/** How to open a socket. */
export interface ZmqSocketOptions {
  /**
   * A `push` and a `publisher` socket receive nothing, a `pull` and a `subscriber` socket send nothing. An `xpublisher`
   * receives a frame for each subscription (first byte 1) and for each that ends (0).
   */
  readonly kind: "request" | "router" | "dealer" | "push" | "pull" | "publisher" | "xpublisher" | "subscriber" | "pair"
  readonly endpoints: ReadonlyArray<Endpoint>
  readonly settings: SocketSettings
  /** Milliseconds that a send may wait in libzmq; never endless, because a protocol error would then be a hang. */
  readonly sendTimeoutMs: number
  readonly lingerMs: number
  /** Whether the list of peers will change: then it names peers that are there, and who is taken from it gets nothing more. */
  readonly peersChange?: boolean | undefined
  /** Of a router: whether a new peer takes over the routing id of one that is there (true), or is refused. */
  readonly handover?: boolean | undefined
  /** Is told what happens on the socket's connections; those inside the process have no events. */
  readonly onEvent?: ((event: Event) => void) | undefined
  /** Of a subscriber: how first frames begin that it wants. Default: all. */
  readonly topics?: ReadonlyArray<string> | undefined
  /** Whether the last frame of what is sent gets a seal, so that the receiver knows whose key sent it; needs CURVE settings. */
  readonly seals?: boolean | undefined
  /** Leaves seals where they are: for who passes messages on, and is not the one who reads them. */
  readonly passesSeals?: boolean | undefined
  /** Gets what is received instead of the queue; what comes after it is read when it calls `more`. It must not throw. */
  readonly hear?: ((batch: ReadonlyArray<Frames>, more: () => void) => void) | undefined
  /** Whom a connecting socket expects, if not the settings' `serverKey`. */
  readonly peerKey?: CurvePublicKey | undefined
}

type Native = Request | Router | Dealer | Push | Pull | Publisher | XPublisher | Subscriber | Pair

const batchMax = 256
/** After so many bytes no more are asked for: while joined frames are worked on, the other side should have answers to work on. */
const batchBytes = 16 * 1024
const askEvery = 4

/**
 * How long the addon waits at a time until a socket takes a message. Receiving on the same socket can swallow the sign that
 * it does, and the addon would then wait for as long as it may.
 */
const sendTurnMs = 100
const queueMax = 1024

/**
 * Receives one message after the other, and hands on with each what else is there already; a pending receive keeps the
 * connection's own work going. Plain callbacks, so that a message that comes alone costs one promise.
 */
const startReading = (socket: Exclude<Native, Push | Publisher>, isAnswered: boolean, hear: (batch: Array<Frames>, more: () => void) => void): void => {
  let batch: Array<Frames> = []
  // To ask whether there is more costs as much as to receive. A requester has one answer to come; elsewhere messages that
  // have come alone may go on so, and are asked about now and then.
  let alone = 0
  let bytes = 0
  const give = (): void => {
    const whole = batch
    batch = []
    bytes = 0
    alone = whole.length === 1 ? alone + 1 : 0
    hear(whole, read)
  }
  const take = (frames: Frames): void => {
    batch.push(frames)
    bytes += frames[frames.length - 1]!.length
    const asks = !isAnswered && bytes < batchBytes && (batch.length > 1 || alone % askEvery === 0) && batch.length < batchMax
    if (asks && !socket.closed && socket.readable) read()
    else give()
  }
  // The addon also rejects for a wake-up without a message; only a closed socket is the end. What was taken before such a
  // wake-up must not wait for the next message, which may never come.
  const read = (): void => {
    if (!socket.closed) socket.receive().then(take, batch.length > 0 ? give : read)
  }
  read()
}

/** A record for each socket: the addon's constructor takes its argument apart. */
const construct = (zmq: Zeromq, options: ZmqSocketOptions, routingId: string, security: Security): Native => {
  const { settings } = options
  const sends = { sendTimeout: Math.min(options.sendTimeoutMs, sendTurnMs), sendHighWaterMark: settings.highWaterMark }
  const receives = { receiveTimeout: -1, receiveHighWaterMark: settings.highWaterMark }
  const common = {
    ...security,
    ...commonOptions(settings),
    linger: options.lingerMs,
    ipv6: options.endpoints.some(({ ipv6 }) => ipv6)
  }
  // With `immediate` a message never queues for a peer that is not there while another one is. It has two prices. An answer
  // that arrives together with the end of its connection is dropped, so that a lone peer does without. And disconnecting
  // takes effect later, so that what is sent just after it can still go to the old peer and be lost.
  const immediate = options.endpoints.length > 1 && options.peersChange !== true
  switch (options.kind) {
    case "request":
      return new zmq.Request({ ...common, ...sends, ...receives, routingId, immediate })
    case "router":
      return new zmq.Router({ ...common, ...sends, ...receives, routingId, mandatory: true, handover: options.handover ?? true })
    case "dealer":
      return new zmq.Dealer({ ...common, ...sends, ...receives, routingId, immediate })
    case "push":
      return new zmq.Push({ ...common, ...sends, immediate })
    case "pull":
      return new zmq.Pull({ ...common, ...receives })
    case "publisher":
      return new zmq.Publisher({ ...common, ...sends })
    case "xpublisher":
      return new zmq.XPublisher({ ...common, ...sends, ...receives, verbosity: "allSubsUnsubs" })
    case "pair":
      return new zmq.Pair({ ...common, ...sends, ...receives })
    case "subscriber": {
      const socket = new zmq.Subscriber({ ...common, ...receives })
      socket.subscribe(...(options.topics ?? [""]))
      return socket
    }
  }
}

const acquire = (zmq: Zeromq, options: ZmqSocketOptions, routingId: string, label: string, security: Security) =>
  Effect.acquireRelease(
    Effect.tap(
      Effect.try({ try: () => construct(zmq, options, routingId, security), catch: (error) => openError(nativeError(error), label) }),
      Metric.modify(ZmqMetrics.openSockets, 1)
    ),
    (socket) => Effect.andThen(Effect.sync(() => socket.close()), Metric.modify(ZmqMetrics.openSockets, -1))
  )

/** Opens a socket, binds and connects it, and starts to read. */
export const openZmqSocket = Effect.fnUntraced(function*(
  zmq: Zeromq,
  options: ZmqSocketOptions
): Effect.fn.Return<ZmqSocket, TransportError, Scope.Scope> {
  const routingId = randomUUID()
  const label = options.endpoints.map(({ address }) => address).join(",")
  const security = yield* securityOf(zmq, options)
  const socket = yield* acquire(zmq, options, routingId, label, security)
  const connected = new Set<string>()
  const admission = makeAdmission(() => connected.size)
  const connects = options.endpoints.every(({ attach }) => attach === "connect")
  const onEvent = (event: Event) => {
    if (connects) admission.onEvent(event)
    options.onEvent?.(event)
  }
  // In-process connections have no events. Detached: see `observe`.
  if (options.endpoints.some(({ address }) => !address.startsWith("inproc://"))) yield* Effect.forkDetach(observe(socket.events, routingId, connects, onEvent))

  // Any call while a bind is under way fails, so that reading and writing start after it.
  const bound = yield* Effect.forEach(
    options.endpoints.filter(({ attach }) => attach === "bind"),
    ({ address }) => bindSocket(socket, address, options.settings)
  )
  const native = (address: string, call: () => void) => Effect.try({ try: call, catch: (error) => openError(nativeError(error), address) })
  const reach = Effect.fnUntraced(function*(endpoints: ReadonlyArray<Endpoint>) {
    const wanted = new Set(endpoints.filter(({ attach }) => attach === "connect").map(({ address }) => address))
    for (const address of connected) {
      if (wanted.has(address)) continue
      connected.delete(address)
      yield* native(address, () => socket.disconnect(address))
    }
    for (const address of wanted) {
      if (connected.has(address)) continue
      yield* native(address, () => socket.connect(address))
      connected.add(address)
    }
  })
  yield* reach(options.endpoints)

  const incoming = yield* Queue.bounded<Frames, Cause.Done>(queueMax)
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const hear = options.hear ?? ((batch, more) => void run(Queue.offerAll(incoming, batch)).addObserver(more))
  if ("receive" in socket) {
    const unseal = options.passesSeals === true ? (frames: Frames) => frames : makeUnseal(options.settings.curve)
    startReading(socket, options.kind === "request", (batch, more) => hear(batch.map(unseal), more))
  }

  const writer = makeSocketWriter({
    // The addon takes the list apart and keeps nothing of it.
    send: (frames) => "send" in socket ? socket.send(frames.length === 1 ? frames[0]! : frames as Array<string | Uint8Array>) : Promise.reject(new Error("a socket of this kind does not send")),
    isClosed: () => socket.closed,
    againMax: Math.floor(options.sendTimeoutMs / sendTurnMs),
    errorOf: (error) => sendError(error, label, socket.closed, options.settings.highWaterMark)
  })
  // Runs first: closing settles the pending receive and send, and the writer then refuses what is still left.
  yield* Effect.addFinalizer(() => Effect.sync(() => socket.close()).pipe(Effect.andThen(writer.settled), Effect.andThen(Queue.end(incoming))))

  const sealed = options.seals === true && options.settings.curve !== undefined ? makeSeal(options.settings.curve) : (frames: OutgoingFrames) => frames
  const post = (frames: OutgoingFrames, posted: Posted) => writer.post(sealed(frames), posted)
  return {
    routingId,
    bound,
    incoming,
    post,
    send: (frames) => Effect.callback((resume) => post(frames, (error) => resume(error === undefined ? Effect.void : Effect.fail(error)))),
    flush: Effect.callback((resume) => writer.post(null, () => resume(Effect.void))),
    reach,
    admission
  }
})
