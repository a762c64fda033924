/**
 * The REQ/REP pattern: a pool of Lazy Pirate clients, and a server that answers many of them on one socket.
 *
 * At-least-once: a client that hears nothing sends again, so that a request can be handled several times. That one
 * charge comes of it is the ledger's work, never this module's.
 */
import type { ChargeClient, TransportError } from "@purser/core"
import { type Config, Effect, type Scope } from "effect"
import type { AnnouncedAddresses } from "./internal/addresses.ts"
import { chargeClient, charges, speaking, textRequests } from "./internal/chargeClient.ts"
import { loadZeromq } from "./internal/native.ts"
import { labelOf, millis, readEndpoints, settingsOf, unusable, wireOf } from "./internal/patternOptions.ts"
import { serveApp } from "./internal/replyServer.ts"
import { makeRequestPool } from "./internal/requestPool.ts"
import { makeRouterServer, openRouterPlace } from "./internal/routerServer.ts"
import { makeTypedClient } from "./internal/typedService.ts"
import { makeTypedReplies } from "./internal/typedWire.ts"
import { defaultRetry, type PatternClientOptions, type PatternServerOptions } from "./PatternOptions.ts"
import type { ServiceClient, ServiceHandler, ServiceMessages, ServiceOptions } from "./ServiceMessages.ts"

/** What a client takes. */
export interface ReqRepClientOptions extends PatternClientOptions {
  /** REQ sockets at the most (16); each has one frame on its way. */
  readonly sockets?: number | undefined
  /** Requests that may wait for a socket (10,000). */
  readonly waitingMax?: number | undefined
  /** Requests joined into one frame at the most (16; 128 is the limit). */
  readonly joinMax?: number | undefined
}

/** What a server takes. */
export interface ReqRepServerOptions extends PatternServerOptions {}

// 128 requests of the greatest length still fit into a request's limit.
const joinLimit = 128

const makePool = Effect.fnUntraced(function*(options: ReqRepClientOptions, announced: AnnouncedAddresses | undefined) {
  const endpoints = yield* readEndpoints(options, "connect")
  const binding = endpoints.find(({ attach }) => attach === "bind")
  if (binding !== undefined && announced === undefined) {
    return yield* unusable(binding.address, "a client has many sockets and cannot bind one address")
  }
  return {
    zmq: yield* loadZeromq,
    addresses: announced?.current ?? Effect.succeed(endpoints),
    settings: settingsOf(options),
    seals: options.form !== "plain",
    label: labelOf(endpoints),
    timeoutMs: millis(options.requestTimeout ?? "30 seconds"),
    retry: options.retry ?? defaultRetry(3),
    sockets: options.sockets ?? 16,
    waitingMax: options.waitingMax ?? 10_000,
    joinMax: Math.min(options.joinMax ?? 16, joinLimit)
  }
})

const makeClient = Effect.fnUntraced(function*(
  options: ReqRepClientOptions,
  announced?: AnnouncedAddresses
): Effect.fn.Return<ChargeClient["Service"], TransportError | Config.ConfigError, Scope.Scope> {
  const wire = yield* wireOf(options)
  return chargeClient(yield* makeRequestPool({ ...(yield* makePool(options, announced)), ...speaking(options, wire), ...charges }))
})

const makeServer = (options: ReqRepServerOptions, announced?: AnnouncedAddresses) =>
  makeRouterServer({ ...options, transport: "req-rep" }, announced)

/** A client of a service with any messages: a pool of Lazy Pirates. Its sockets close with the scope. */
const client = <Req, Rep, Err = never>(
  options: ServiceMessages<Req, Rep, Err> & ServiceOptions & Omit<ReqRepClientOptions, "wire">
): Effect.Effect<ServiceClient<Req, Rep, Err>, TransportError, Scope.Scope> =>
  makeTypedClient(options, options, (wire) => Effect.flatMap(makePool(options, undefined), (pool) => makeRequestPool({ ...pool, ...textRequests, wire })))

/** Serves any messages until interrupted: REQ peers get one answer for each message. */
const serve = <Req, Rep, Err = never>(
  options: ServiceMessages<Req, Rep, Err> & Omit<ReqRepServerOptions, "wire">,
  handler: ServiceHandler<Req, Rep, Err>
): Effect.Effect<never, TransportError> =>
  Effect.flatMap(openRouterPlace({ ...options, transport: "req-rep" }), (place) => serveApp(options, place, makeTypedReplies(options, handler, place.label)))

/** Both sides of the pattern: `client` and `serve` for any messages, the others for charges (`ZmqTransport` has them as layers). */
export const ReqRep = { makeClient, makeServer, client, serve } as const
