/**
 * The ROUTER/DEALER pattern: a client with many requests in flight on one DEALER socket, and a ROUTER that answers each
 * of them as soon as it is done.
 *
 * At-least-once: a request without an answer is sent again. The socket's routing id is made for its life and is part of
 * nothing that a payment depends on.
 */
import { ChargeClient, type TransportError } from "@purser/core"
import { type Config, Effect, type Scope } from "effect"
import type { AnnouncedAddresses } from "./internal/addresses.ts"
import { carrierSend, type OpenCarrier } from "./internal/carrier.ts"
import { loadZeromq } from "./internal/native.ts"
import { labelOf, millis, readEndpoints, settingsOf, unusable, windowOf, wireOf } from "./internal/patternOptions.ts"
import { makeRouterServer } from "./internal/routerServer.ts"
import { traced } from "./internal/traced.ts"
import { makeWindowClient } from "./internal/windowClient.ts"
import { defaultRetry, type PatternServerOptions, type WindowClientOptions } from "./PatternOptions.ts"
import { openZmqSocket } from "./ZmqSocket.ts"

/** What a client takes. Requests are joined by up to 64 into one frame. */
export interface RouterDealerClientOptions extends WindowClientOptions {}

/** What a server takes. */
export interface RouterDealerServerOptions extends PatternServerOptions {
  /** Whether a peer takes over the routing id of another one that is connected (true), or is refused. */
  readonly handover?: boolean | undefined
}

// 128 requests of the greatest length still fit into a request's limit.
const joinLimit = 128

const makeClient = Effect.fnUntraced(function*(
  options: RouterDealerClientOptions,
  announced?: AnnouncedAddresses
): Effect.fn.Return<ChargeClient["Service"], TransportError | Config.ConfigError, Scope.Scope> {
  const endpoints = yield* readEndpoints(options, "connect")
  const binding = endpoints.find(({ attach }) => attach === "bind")
  if (binding !== undefined && announced === undefined) {
    return yield* unusable(binding.address, "a client renews its socket and cannot bind one address")
  }
  const zmq = yield* loadZeromq
  const settings = settingsOf(options)
  const timeoutMs = millis(options.requestTimeout ?? "30 seconds")
  const open: OpenCarrier = (peers) =>
    Effect.map(
      openZmqSocket(zmq, {
        kind: "dealer",
        seals: true,
        endpoints: peers,
        settings,
        sendTimeoutMs: timeoutMs,
        // What is unsent when a life ends has been given up, or is sent again by the next one.
        lingerMs: 0,
        peersChange: announced !== undefined
      }),
      (socket) => ({ client: socket.routingId, send: carrierSend(socket), incoming: socket.incoming, reach: socket.reach })
    )
  const window = yield* makeWindowClient({
    ...windowOf(options),
    wire: yield* wireOf(options),
    keyOf: (request) => request.chargeKey,
    label: labelOf(endpoints),
    addresses: announced?.current ?? Effect.succeed(endpoints),
    open,
    timeoutMs,
    retry: options.retry ?? defaultRetry(3),
    joinMax: Math.min(options.joinMax ?? 64, joinLimit)
  })
  return ChargeClient.of({ submit: (request) => traced("ChargeClient.submit", window.submit(request)) })
})

const makeServer = (options: RouterDealerServerOptions, announced?: AnnouncedAddresses) => makeRouterServer({ ...options, transport: "router-dealer" }, announced)

/** Both sides of the pattern, for charges. `ZmqTransport` has them as layers. */
export const RouterDealer = { makeClient, makeServer } as const
