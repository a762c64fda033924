/**
 * The ZeroMQ transports as layers, one name for each pattern, with settings from the configuration or given in code.
 *
 * Building a layer loads the native addon and opens no socket. A server binds when `serve` is called, a client connects
 * with its first request, so that a process that uses one side of a layer never holds the other side's address.
 */
import { ChargeClient, ChargeServer, type TransportError, type TransportServices } from "@purser/core"
import { Config, Context, Effect, Layer, Schema } from "effect"
import { makeAnnouncedAddresses } from "./internal/addresses.ts"
import { defaultEndpoint, defaultRetry, ReqRep, type ReqRepClientOptions, type ReqRepServerOptions } from "./ReqRep.ts"

/** Settings of both sides of REQ/REP. */
export interface ReqRepLayerOptions extends ReqRepClientOptions, ReqRepServerOptions {}

type Built<Services> = Layer.Layer<Services, TransportError | Config.ConfigError>

const layerReqRepClient = (options: ReqRepClientOptions): Built<ChargeClient> => Layer.effect(ChargeClient, ReqRep.makeClient(options))

const layerReqRepServer = (options: ReqRepServerOptions): Built<ChargeServer> => Layer.effect(ChargeServer, ReqRep.makeServer(options))

const layerReqRepWith = (options: ReqRepLayerOptions): Built<TransportServices> =>
  Layer.merge(layerReqRepClient(options), layerReqRepServer(options))

const whole = (name: string, minimum: number, otherwise: number) =>
  Config.schema(Schema.Int.check(Schema.isGreaterThanOrEqualTo(minimum)), name).pipe(Config.withDefault(otherwise))

const settings = Config.all({
  endpoint: Config.String("PURSER_ENDPOINT").pipe(Config.withDefault(defaultEndpoint)),
  allowPlain: Config.Boolean("PURSER_ALLOW_PLAIN").pipe(Config.withDefault(false)),
  requestTimeout: Config.Duration("PURSER_REQUEST_TIMEOUT").pipe(Config.withDefault("30 seconds")),
  retries: whole("PURSER_REQUEST_RETRIES", 0, 3),
  sockets: whole("PURSER_CLIENT_SOCKETS", 1, 16),
  joinMax: whole("PURSER_CLIENT_JOIN", 1, 16),
  concurrency: whole("PURSER_SERVER_CONCURRENCY", 1, 256),
  drainTimeout: Config.Duration("PURSER_DRAIN_TIMEOUT").pipe(Config.withDefault("10 seconds"))
})

const configured = Effect.map(settings, ({ retries, ...options }) => ({ ...options, retry: defaultRetry(retries) }))

const layerReqRep: Built<TransportServices> = Layer.unwrap(Effect.map(configured, layerReqRepWith))

const layerReqRepLoopback = (options: ReqRepLayerOptions = {}): Built<TransportServices> =>
  Layer.effectContext(Effect.gen(function*() {
    const announced = yield* makeAnnouncedAddresses
    const both = { ...yield* configured, endpoint: "tcp://127.0.0.1:*", ...options }
    const client = yield* ReqRep.makeClient(both, announced)
    const server = yield* ReqRep.makeServer(both, announced)
    return Context.make(ChargeClient, client).pipe(Context.add(ChargeServer, server))
  }))

/** The layers of this package. */
export const ZmqTransport = {
  /** REQ/REP with `PURSER_ENDPOINT` and the other settings of the configuration. */
  layerReqRep,
  /** REQ/REP with settings given in code. */
  layerReqRepWith,
  /** The sending side alone. */
  layerReqRepClient,
  /** The serving side alone. */
  layerReqRepServer,
  /** Both sides in one process, over real sockets: the client finds the port that the server got. Options go before the configuration. */
  layerReqRepLoopback
} as const
