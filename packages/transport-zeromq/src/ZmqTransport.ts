/**
 * The ZeroMQ transports as layers, one name for each pattern, with settings from the configuration or given in code.
 *
 * Building a layer loads the native addon and opens no socket. A server binds when `serve` is called, a client connects
 * with its first request, so that a process that uses one side of a layer never holds the other side's address.
 */
import { ChargeClient, ChargeServer, DeadLetterSink, type TransportError, type TransportServices } from "@purser/core"
import { Config, Context, Effect, Layer, Schema, type Scope } from "effect"
import { randomUUID } from "node:crypto"
import { curveConfig } from "./CurveSettings.ts"
import { type AnnouncedAddresses, makeAnnouncedAddresses } from "./internal/addresses.ts"
import { given } from "./internal/patternOptions.ts"
import { Broker, type BrokerOptions } from "./Broker.ts"
import { Majordomo, type MajordomoClientOptions, type MajordomoServerOptions } from "./Majordomo.ts"
import { defaultEndpoint, defaultRetry } from "./PatternOptions.ts"
import { Pair, type PairClientOptions, type PairServerOptions } from "./Pair.ts"
import { PubSub, type PubSubClientOptions, type PubSubServerOptions } from "./PubSub.ts"
import { PushPull, type PushPullClientOptions, type PushPullServerOptions } from "./PushPull.ts"
import { ReqRep, type ReqRepClientOptions, type ReqRepServerOptions } from "./ReqRep.ts"
import { RouterDealer, type RouterDealerClientOptions, type RouterDealerServerOptions } from "./RouterDealer.ts"

/** Settings of both sides of REQ/REP. */
export interface ReqRepLayerOptions extends ReqRepClientOptions, ReqRepServerOptions {}

/** Settings of both sides of ROUTER/DEALER. */
export interface RouterDealerLayerOptions extends RouterDealerClientOptions, RouterDealerServerOptions {}

/** Settings of both sides of PUSH/PULL. */
export interface PushPullLayerOptions extends PushPullClientOptions, PushPullServerOptions {}

/** Settings of both sides of PUB/SUB. */
export interface PubSubLayerOptions extends PubSubClientOptions, PubSubServerOptions {}

/** Settings of both sides of PAIR. */
export interface PairLayerOptions extends PairClientOptions, PairServerOptions {}

/** Settings of both sides of Majordomo; a broker of this process takes its own from them too. */
export interface MajordomoLayerOptions extends MajordomoClientOptions, MajordomoServerOptions, Pick<BrokerOptions, "queueMax" | "expiry"> {}

type Built<Services> = Layer.Layer<Services, TransportError | Config.ConfigError>

/** A pattern as a pair of constructors. */
interface Pattern<ClientOptions, ServerOptions> {
  readonly makeClient: (
    options: ClientOptions,
    announced?: AnnouncedAddresses
  ) => Effect.Effect<ChargeClient["Service"], TransportError | Config.ConfigError, Scope.Scope>
  readonly makeServer: (options: ServerOptions, announced?: AnnouncedAddresses) => Effect.Effect<ChargeServer["Service"], TransportError | Config.ConfigError>
}

const whole = (name: string, minimum: number) => Config.schema(Schema.Int.check(Schema.isGreaterThanOrEqualTo(minimum)), name)

const settings = Config.all({
  endpoint: Config.String("PURSER_ENDPOINT").pipe(Config.withDefault(defaultEndpoint)),
  allowPlain: Config.Boolean("PURSER_ALLOW_PLAIN").pipe(Config.withDefault(false)),
  requestTimeout: Config.Duration("PURSER_REQUEST_TIMEOUT").pipe(Config.withDefault("30 seconds")),
  retries: whole("PURSER_REQUEST_RETRIES", 0).pipe(Config.withDefault(3)),
  sockets: given(whole("PURSER_CLIENT_SOCKETS", 1)),
  joinMax: given(whole("PURSER_CLIENT_JOIN", 1)),
  window: given(whole("PURSER_CLIENT_WINDOW", 1)),
  form: given(Config.Literals(["joined", "plain"], "PURSER_CLIENT_FORM")),
  whenFull: given(Config.Literals(["wait", "fail"], "PURSER_CLIENT_WHEN_FULL")),
  returnEndpoint: given(Config.String("PURSER_RETURN_ENDPOINT")),
  ackEndpoint: given(Config.String("PURSER_ACK_ENDPOINT")),
  workersMin: given(whole("PURSER_PUB_SUB_WORKERS", 1)),
  concurrency: whole("PURSER_SERVER_CONCURRENCY", 1).pipe(Config.withDefault(256)),
  service: given(Config.NonEmptyString("PURSER_SERVICE")),
  credit: given(whole("PURSER_WORKER_CREDIT", 1)),
  heartbeat: given(Config.Duration("PURSER_HEARTBEAT")),
  drainTimeout: Config.Duration("PURSER_DRAIN_TIMEOUT").pipe(Config.withDefault("10 seconds"))
})

/** What every pattern's options have room for, or take no notice of. */
type Configured = ReqRepLayerOptions & PushPullLayerOptions & PubSubLayerOptions & MajordomoLayerOptions

const configured: Effect.Effect<Configured, TransportError | Config.ConfigError, Scope.Scope> = Effect.gen(function*() {
  const { retries, ...options } = yield* settings
  const curve = yield* curveConfig
  return { ...options, retry: defaultRetry(retries), socket: { curve } }
})

/** The layers of a pattern. */
const layersOf = <ClientOptions extends object, ServerOptions extends object>(pattern: Pattern<ClientOptions, ServerOptions>) => {
  type Both = ClientOptions & ServerOptions
  const layerClient = (options: ClientOptions): Built<ChargeClient> => Layer.effect(ChargeClient, pattern.makeClient(options))
  // Read when the layer is built: there an app gives the store, and not where it serves.
  const makeServer = (options: ServerOptions, announced?: AnnouncedAddresses) =>
    Effect.flatMap(DeadLetterSink, (deadLetters) => pattern.makeServer({ deadLetters, ...options }, announced))
  const layerServer = (options: ServerOptions): Built<ChargeServer> => Layer.effect(ChargeServer, makeServer(options))
  const layerWith = (options: Both): Built<TransportServices> => Layer.merge(layerClient(options), layerServer(options))
  const layerBoth = (options: Both): Built<TransportServices> =>
    Layer.effectContext(Effect.gen(function*() {
      const announced = yield* makeAnnouncedAddresses
      const client = yield* pattern.makeClient(options, announced)
      const server = yield* makeServer(options, announced)
      return Context.make(ChargeClient, client).pipe(Context.add(ChargeServer, server))
    }))
  return { layerClient, layerServer, layerWith, layerBoth }
}

const loopback = "tcp://127.0.0.1:*"
const reqRep = layersOf<ReqRepClientOptions, ReqRepServerOptions>(ReqRep)
const routerDealer = layersOf<RouterDealerClientOptions, RouterDealerServerOptions>(RouterDealer)
const pushPull = layersOf<PushPullClientOptions, PushPullServerOptions>(PushPull)
const pubSub = layersOf<PubSubClientOptions, PubSubServerOptions>(PubSub)
const pair = layersOf<PairClientOptions, PairServerOptions>(Pair)
const majordomo = layersOf<MajordomoClientOptions, MajordomoServerOptions>(Majordomo)

/**
 * The layers of this package. Of each pattern: both sides with `PURSER_ENDPOINT` and the other settings of the
 * configuration; both with settings given in code; the sending side alone; the serving side alone; and both sides in one
 * process over real sockets, where the client finds the port that the server got and options go before the configuration.
 */
export const ZmqTransport = {
  layerReqRep: Layer.unwrap(Effect.map(configured, reqRep.layerWith)),
  layerReqRepWith: reqRep.layerWith,
  layerReqRepClient: reqRep.layerClient,
  layerReqRepServer: reqRep.layerServer,
  layerReqRepLoopback: (options: ReqRepLayerOptions = {}): Built<TransportServices> =>
    Layer.unwrap(Effect.map(configured, (all) => reqRep.layerBoth({ ...all, endpoint: loopback, ...options }))),

  layerRouterDealer: Layer.unwrap(Effect.map(configured, routerDealer.layerWith)),
  layerRouterDealerWith: routerDealer.layerWith,
  layerRouterDealerClient: routerDealer.layerClient,
  layerRouterDealerServer: routerDealer.layerServer,
  layerRouterDealerLoopback: (options: RouterDealerLayerOptions = {}): Built<TransportServices> =>
    Layer.unwrap(Effect.map(configured, (all) => routerDealer.layerBoth({ ...all, endpoint: loopback, ...options }))),

  layerPushPull: Layer.unwrap(Effect.map(configured, pushPull.layerWith)),
  layerPushPullWith: pushPull.layerWith,
  layerPushPullClient: pushPull.layerClient,
  layerPushPullServer: pushPull.layerServer,
  layerPushPullLoopback: (options: PushPullLayerOptions = {}): Built<TransportServices> =>
    Layer.unwrap(Effect.map(configured, (all) => pushPull.layerBoth({ ...all, endpoint: loopback, returnEndpoint: undefined, ackEndpoint: undefined, ...options }))),

  layerPubSub: Layer.unwrap(Effect.map(configured, pubSub.layerWith)),
  layerPubSubWith: pubSub.layerWith,
  layerPubSubClient: pubSub.layerClient,
  layerPubSubServer: pubSub.layerServer,
  layerPubSubLoopback: (options: PubSubLayerOptions = {}): Built<TransportServices> =>
    Layer.unwrap(Effect.map(configured, (all) => pubSub.layerBoth({ ...all, endpoint: loopback, returnEndpoint: undefined, ackEndpoint: undefined, ...options }))),

  layerPairWith: pair.layerWith,
  layerPairClient: pair.layerClient,
  layerPairServer: pair.layerServer,
  /** Both sides in this process, which is the only place for it; `PURSER_ENDPOINT` has no meaning here. */
  layerPair: (options: PairLayerOptions = {}): Built<TransportServices> =>
    Layer.unwrap(Effect.map(configured, (all) => pair.layerWith({ ...all, endpoint: `inproc://purser-pair-${randomUUID()}`, ...options }))),

  layerMajordomo: Layer.unwrap(Effect.map(configured, majordomo.layerWith)),
  layerMajordomoWith: majordomo.layerWith,
  layerMajordomoClient: majordomo.layerClient,
  layerMajordomoServer: majordomo.layerServer,
  /** With a broker of its own. */
  layerMajordomoLoopback: (options: MajordomoLayerOptions = {}): Built<TransportServices> =>
    Layer.unwrap(Effect.gen(function*() {
      const all = { ...(yield* configured), endpoint: loopback, ...options }
      const { bound } = yield* Broker.open(all)
      return majordomo.layerWith({ ...all, endpoint: bound })
    }))
} as const
