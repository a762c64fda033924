/**
 * The REQ/REP pattern: a pool of Lazy Pirate clients, and a server that answers many of them on one socket.
 *
 * At-least-once: a client that hears nothing sends again, so that a request can be handled several times. That one
 * charge comes of it is the ledger's work, never this module's.
 */
import { ChargeClient, Closed, TransportError } from "@purser/core"
import { type Config, Effect, type Scope } from "effect"
import type { AnnouncedAddresses } from "./internal/addresses.ts"
import { loadZeromq } from "./internal/native.ts"
import { labelOf, millis, readEndpoints, settingsOf, wireOf } from "./internal/patternOptions.ts"
import { makeRequestPool } from "./internal/requestPool.ts"
import { makeRouterServer } from "./internal/routerServer.ts"
import { defaultRetry, type PatternClientOptions, type PatternServerOptions } from "./PatternOptions.ts"

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

const makeClient = Effect.fnUntraced(function*(
  options: ReqRepClientOptions,
  announced?: AnnouncedAddresses
): Effect.fn.Return<ChargeClient["Service"], TransportError | Config.ConfigError, Scope.Scope> {
  const endpoints = yield* readEndpoints(options, "connect")
  const label = labelOf(endpoints)
  const binding = endpoints.find(({ attach }) => attach === "bind")
  if (binding !== undefined && announced === undefined) {
    const detail = "a client has many sockets and cannot bind one address"
    return yield* new TransportError({ reason: new Closed({ endpoint: binding.address, detail }), chargeKey: null })
  }
  const pool = yield* makeRequestPool({
    zmq: yield* loadZeromq,
    wire: yield* wireOf(options),
    addresses: announced?.current ?? Effect.succeed(endpoints),
    settings: settingsOf(options),
    label,
    timeoutMs: millis(options.requestTimeout ?? "30 seconds"),
    retry: options.retry ?? defaultRetry(3),
    sockets: options.sockets ?? 16,
    waitingMax: options.waitingMax ?? 10_000,
    joinMax: Math.min(options.joinMax ?? 16, joinLimit)
  })
  return ChargeClient.of({
    submit: Effect.fn("ChargeClient.submit")((request) => pool.submit(request))
  })
})

const makeServer = (options: ReqRepServerOptions, announced?: AnnouncedAddresses) => makeRouterServer({ ...options, transport: "req-rep" }, announced)

/** Both sides of the pattern, for charges. `ZmqTransport` has them as layers. */
export const ReqRep = { makeClient, makeServer } as const
