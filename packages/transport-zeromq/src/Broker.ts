/**
 * The Majordomo broker (18/MDP with the heartbeats of 6/PPP): one ROUTER between any number of clients and workers.
 *
 * Decisions are made in `internal/brokerState.ts`; here are the socket, the clock and the counters. Everything is in
 * memory: what a broker held when it died is asked for again by its clients. No send ever waits for a peer, so that a
 * full one stops nobody else.
 */
import {
  Backpressure, type DeadLetter, DeadLetterSink, MalformedMessage, PeerUnreachable, TransportError, type TransportErrorReason, Unauthorized, type WireCodec
} from "@purser/core"
import { Clock, Config, Context, type Duration, Effect, Latch, Layer, Metric, Queue, Result, Schema, type Scope, Semaphore } from "effect"
import { randomUUID } from "node:crypto"
import { BrokerMetrics } from "./BrokerMetrics.ts"
import { curveConfig } from "./CurveSettings.ts"
import { type BrokerAction, type BrokerEvent, type BrokerFigures, makeBrokerState } from "./internal/brokerState.ts"
import { makeChargeReplies } from "./internal/chargeReplies.ts"
import { isOfFleet, makeUnseal, senderOf } from "./internal/frameSeal.ts"
import { heartbeatMsOf } from "./internal/heartbeat.ts"
import { type BrokerMessage, mdp, readAtBroker, wayBackOf } from "./internal/mdp.ts"
import { loadZeromq } from "./internal/native.ts"
import { given, labelOf, millis, readEndpoints, settingsOf, wireOf } from "./internal/patternOptions.ts"
import { refusalOf } from "./internal/replyApp.ts"
import { makeTypedReplies } from "./internal/typedWire.ts"
import { defaultService } from "./Majordomo.ts"
import { defaultEndpoint, type PatternOptions } from "./PatternOptions.ts"
import { type Frames, openZmqSocket, type OutgoingFrames } from "./ZmqSocket.ts"

/** Writes the answer to a request that is not taken; undefined leaves it without one, and its sender to its deadline. */
export type RefuseRequest = (body: Frames, reason: TransportErrorReason) => OutgoingFrames | undefined

/** What a broker takes. */
export interface BrokerOptions extends PatternOptions {
  /** How often broker and workers tell each other that they live (1 second). A worker is dropped within three of these. */
  readonly heartbeat?: Duration.Input | undefined
  /** Messages that wait for a worker at the most (10,000), a quarter of them for services that nobody works for; one more is refused with `Backpressure`. */
  readonly queueMax?: number | undefined
  /** Their bytes (64 MiB). */
  readonly queueMaxBytes?: number | undefined
  /** How long a message waits whose sender names no deadline (30 seconds). */
  readonly expiry?: Duration.Input | undefined
  /** The longest that a message waits, whatever deadline its sender names (10 minutes). */
  readonly expiryMax?: Duration.Input | undefined
  /** Workers at the most (1,000). */
  readonly workersMax?: number | undefined
  /** Messages at a time that a worker may ask for at the most (256). */
  readonly creditMax?: number | undefined
  /** How long a closing broker waits for answers to what workers hold (10 seconds). */
  readonly drainTimeout?: Duration.Input | undefined
  /** Where messages go that cannot be read, and READY of who may not work; else `DeadLetterSink`, which logs them. */
  readonly deadLetters?: ((letter: DeadLetter) => Effect.Effect<void>) | undefined
  /** How refusals are written: by default as charges, for the requests of this package's clients. */
  readonly refuse?: RefuseRequest | undefined
}

/**
 * Refusals that the clients of this package and plain senders of charges can read. A frame of which nothing is a charge is
 * taken for one of another service's messages.
 */
const refuseEither = (wire: WireCodec, label: string): RefuseRequest => {
  const charges = makeChargeReplies(() => Effect.never, wire)
  const others = makeTypedReplies({ request: Schema.Unknown, reply: Schema.Void }, () => Effect.never, label)
  const isOther = (text: string) =>
    Result.match(charges.read(text), { onFailure: () => false, onSuccess: ({ divisible, items }) => divisible && items.every(({ request }) => Result.isFailure(request)) })
  return ([body], reason) => {
    if (body === undefined) return undefined
    const text = body.toString("utf8")
    return [isOther(text) ? refusalOf(others, text, reason) : refusalOf(charges, text, reason)]
  }
}

/** Letters that wait to be kept; more are dropped, as messages that nobody could read. */
const lettersWaitingMax = 256

const idOf = (peer: Frames) => peer[0]!.toString("latin1")
const addressOf = (worker: string) => Buffer.from(worker, "latin1")
const bytesOf = (body: Frames) => body.reduce((sum, { length }) => sum + length, 0)

/** Who asked, and whether its answer goes without the protocol's frames, as its request came. */
interface Client {
  readonly peer: Frames
  readonly plain: boolean
}

/** What a message means to the broker. */
const eventOf = (message: BrokerMessage): BrokerEvent<Client, Frames> => {
  const { peer } = message
  switch (message._tag) {
    case "Plain":
    case "Request": {
      const plain = message._tag === "Plain"
      const { deadlineMs, service } = message._tag === "Plain" ? { deadlineMs: undefined, service: defaultService } : message
      // Part of the way back that the answering worker sees; nobody can guess another's.
      return { _tag: "Requested", token: randomUUID(), client: { peer, plain }, service, body: message.body, bytes: bytesOf(message.body), deadlineMs }
    }
    case "Ready":
      return { _tag: "Ready", worker: idOf(peer), service: message.service, credit: message.credit }
    case "Answer":
      return { _tag: "Answered", worker: idOf(peer), token: message.token, final: message.final, body: message.body }
    case "Heartbeat":
      return { _tag: "Heartbeat", worker: idOf(peer), finals: message.finals }
    case "Disconnect":
      return { _tag: "Disconnected", worker: idOf(peer) }
  }
}

const settings = Config.all({
  endpoint: Config.String("PURSER_ENDPOINT").pipe(Config.withDefault(defaultEndpoint)),
  allowPlain: Config.Boolean("PURSER_ALLOW_PLAIN").pipe(Config.withDefault(false)),
  heartbeat: given(Config.Duration("PURSER_HEARTBEAT")),
  queueMax: given(Config.schema(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)), "PURSER_BROKER_QUEUE")),
  drainTimeout: given(Config.Duration("PURSER_DRAIN_TIMEOUT"))
})

/** Opens a broker that works until the scope closes, and then lets workers end what they hold. */
const open = Effect.fnUntraced(function*(options: BrokerOptions): Effect.fn.Return<Broker["Service"], TransportError | Config.ConfigError, Scope.Scope> {
  const endpoints = yield* readEndpoints(options, "bind")
  const label = labelOf(endpoints)
  const settings = settingsOf(options)
  const heartbeatMs = heartbeatMsOf(options.heartbeat)
  const queueMax = options.queueMax ?? 10_000
  const zmq = yield* loadZeromq
  const wire = yield* wireOf(options)
  const refuse = options.refuse ?? refuseEither(wire, label)
  const state = makeBrokerState<Client, Frames>({
    heartbeatMs,
    queueMax,
    queueMaxBytes: options.queueMaxBytes ?? 64 * 1024 * 1024,
    expiryMs: millis(options.expiry ?? "30 seconds"),
    expiryMaxMs: millis(options.expiryMax ?? "10 minutes"),
    workersMax: options.workersMax ?? 1000,
    creditMax: options.creditMax ?? 256
  }, yield* Clock.currentTimeMillis)

  const socket = yield* openZmqSocket(zmq, { kind: "router", endpoints, settings, sendTimeoutMs: 0, lingerMs: settings.lingerMs, passesSeals: true })
  const turn = yield* Semaphore.make(1)
  const idle = yield* Latch.make(true)

  /** Sends to a worker; one that cannot be reached, or takes no more, is lost. */
  const toWorker = (worker: string, frames: OutgoingFrames, lost: Array<string>) =>
    Effect.catch(socket.send([addressOf(worker), ...frames]), () => Effect.sync(() => void lost.push(worker)))
  const toPeer = (peer: Frames, frames: OutgoingFrames) =>
    Effect.catch(socket.send([...peer, ...frames]), (error) =>
      Effect.andThen(Metric.update(BrokerMetrics.unroutableReplies, 1), Effect.logDebug("an answer was not sent", error.message)))
  const toClient = ({ peer, plain }: Client, service: string, final: boolean, body: OutgoingFrames) => {
    if (!plain) return toPeer(peer, mdp.reply(service, final, body))
    // The end of an answer that has left already says nothing to a peer that knows no ends.
    return body.every(({ length }) => length === 0) ? Effect.void : toPeer(peer, body)
  }

  // Keeping a letter may take time, which the broker's peers must not wait for.
  const letters = yield* Queue.dropping<DeadLetter>(lettersWaitingMax)
  const deadLetters = options.deadLetters ?? (yield* DeadLetterSink)
  yield* Queue.take(letters).pipe(Effect.flatMap(deadLetters), Effect.forever, Effect.forkScoped)
  const bury = (frames: Frames, principal: string | null, reason: TransportErrorReason) =>
    Queue.offer(letters, { transport: "majordomo", principal, reason: reason._tag, detail: reason.message, body: Buffer.concat([...frames]) })

  const perform = (action: BrokerAction<Client, Frames>, lost: Array<string>): Effect.Effect<void> => {
    switch (action._tag) {
      case "Give":
        return toWorker(action.worker, mdp.work(action.token, action.body), lost)
      case "Answer":
        return toClient(action.client, action.service, action.final, action.body)
      case "Beat":
        return toWorker(action.worker, mdp.heartbeat(action.requests), lost)
      case "Dismiss":
        return toWorker(action.worker, mdp.disconnect, [])
      case "Refuse": {
        const reason = action.because === "full"
          ? new Backpressure({ endpoint: label, window: queueMax })
          : new PeerUnreachable({ endpoint: label, detail: "the broker is closing" })
        const answer = refuse(action.body, reason)
        return Effect.andThen(
          Metric.update(BrokerMetrics.refused, 1),
          answer === undefined ? Effect.void : toClient(action.client, action.service, true, answer)
        )
      }
      case "Dropped":
        return Metric.update(BrokerMetrics.droppedWorkers, action.because).pipe(
          Effect.andThen(Metric.update(BrokerMetrics.requeued, action.requeued)),
          Effect.andThen(action.because === "left"
            ? Effect.logDebug("a worker left", action)
            : Effect.logWarning(`a worker was dropped (${action.because}); ${action.requeued} requests go to others`))
        )
      case "Expired":
        return Metric.update(BrokerMetrics.expired, 1)
      case "Stale":
        return Metric.update(BrokerMetrics.staleReplies, 1)
    }
  }

  const happen = Effect.fnUntraced(function*(event: BrokerEvent<Client, Frames>) {
    const lost: Array<string> = []
    for (let next: BrokerEvent<Client, Frames> | undefined = event; next !== undefined;) {
      for (const action of state.handle(next, yield* Clock.currentTimeMillis)) yield* perform(action, lost)
      const worker = lost.shift()
      next = worker === undefined ? undefined : { _tag: "Unreachable", worker }
    }
  })
  const measure = Effect.gen(function*() {
    const { given, waiting, workers } = state.figures()
    yield* Metric.update(BrokerMetrics.given, given)
    yield* Metric.update(BrokerMetrics.waiting, waiting)
    yield* Metric.update(BrokerMetrics.workers, workers)
    yield* given === 0 && (waiting === 0 || workers === 0) ? idle.open : idle.close
  })
  const inTurn = (events: Effect.Effect<void>) => turn.withPermit(Effect.andThen(events, measure))

  const { curve } = settings
  const unseal = makeUnseal(curve)
  const unread = Effect.fnUntraced(function*(frames: Frames) {
    const reason = new MalformedMessage({ detail: "neither a message of 18/MDP nor a request in the plain form", field: null })
    const peer = wayBackOf(frames)
    yield* Metric.update(BrokerMetrics.malformed, 1)
    yield* bury(frames.slice(peer.length), senderOf(unseal(frames)).principal, reason)
    yield* toPeer(peer, [wire.encodePlainReply(Result.fail(new TransportError({ reason, chargeKey: null })), undefined)])
  })
  const notOfFleet = Effect.fnUntraced(function*(frames: Frames) {
    const { principal, refused } = senderOf(unseal(frames))
    const reason = new Unauthorized({ detail: `only the fleet's key may work here: ${refused ?? `READY came from ${principal ?? "a peer without a seal"}`}` })
    yield* Metric.update(BrokerMetrics.refusedWorkers, 1)
    yield* Effect.logWarning("a worker was refused", reason.message)
    yield* bury(frames.slice(1), principal, reason)
  })
  const hear = (frames: Frames) => {
    const message = readAtBroker(frames)
    if (message === undefined) return unread(frames)
    if (message._tag === "Ready" && curve !== undefined && !isOfFleet(curve, senderOf(unseal(frames)))) return notOfFleet(frames)
    return happen(eventOf(message))
  }
  yield* Queue.takeAll(socket.incoming).pipe(
    Effect.flatMap((batch) => Effect.uninterruptible(inTurn(Effect.forEach(batch, hear, { discard: true })))),
    Effect.forever,
    Effect.ignore,
    Effect.forkScoped
  )
  yield* Effect.sleep(heartbeatMs / 4).pipe(
    Effect.andThen(Effect.uninterruptible(inTurn(happen({ _tag: "Ticked" })))),
    Effect.forever,
    Effect.forkScoped
  )
  // Runs before the fibers above are stopped: answers to what is on its way still pass through.
  yield* Effect.addFinalizer(() =>
    inTurn(happen({ _tag: "Closing" })).pipe(
      Effect.andThen(Effect.timeoutOption(Effect.interruptible(idle.await), millis(options.drainTimeout ?? "10 seconds"))),
      Effect.andThen(inTurn(happen({ _tag: "Closed" })))
    )
  )
  yield* Effect.logInfo(`a broker serves on ${socket.bound.join(",")}`)
  return Broker.of({ bound: socket.bound, figures: Effect.sync(state.figures) })
})

/** A broker that runs as long as its layer is there. */
export class Broker extends Context.Service<Broker, {
  /** The addresses that were bound, with the port that a wildcard got. */
  readonly bound: ReadonlyArray<string>
  readonly figures: Effect.Effect<BrokerFigures>
}>()("@purser/transport-zeromq/Broker") {
  /** Opens a broker in the present scope. */
  static readonly open = open
  static readonly layer = (options: BrokerOptions = {}): Layer.Layer<Broker, TransportError | Config.ConfigError> => Layer.effect(Broker, open(options))
  /** With the configuration's settings. */
  static readonly layerConfig: Layer.Layer<Broker, TransportError | Config.ConfigError> = Layer.effect(
    Broker,
    Effect.gen(function*() {
      const options = yield* settings
      return yield* open({ ...options, socket: { curve: yield* curveConfig } })
    })
  )
}
