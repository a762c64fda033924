/**
 * The ROUTER/DEALER pattern: a client with many requests in flight on one DEALER socket, and a ROUTER that answers each
 * of them as soon as it is done.
 *
 * At-least-once: a request without an answer is sent again. The socket's routing id is made for its life and is part of
 * nothing that a payment depends on.
 */
import type { ChargeClient, TransportError } from "@purser/core"
import { type Config, Effect, type Scope } from "effect"
import type { AnnouncedAddresses } from "./internal/addresses.ts"
import { chargeClient, charges, speaking, textRequests } from "./internal/chargeClient.ts"
import { carrierSend, hearing, type OpenCarrier } from "./internal/carrier.ts"
import { loadZeromq } from "./internal/native.ts"
import { labelOf, millis, readEndpoints, settingsOf, unusable, windowOf, wireOf } from "./internal/patternOptions.ts"
import { serveApp } from "./internal/replyServer.ts"
import { makeRouterServer, openRouterPlace } from "./internal/routerServer.ts"
import { makeTypedClient } from "./internal/typedService.ts"
import { makeTypedReplies } from "./internal/typedWire.ts"
import { makeWindowClient } from "./internal/windowClient.ts"
import { defaultRetry, type PatternServerOptions, type WindowClientOptions } from "./PatternOptions.ts"
import type { ServiceClient, ServiceHandler, ServiceMessages, ServiceOptions } from "./ServiceMessages.ts"
import { openZmqSocket } from "./ZmqSocket.ts"

/** What a client takes. Requests are joined by up to 128 into one frame. */
export interface RouterDealerClientOptions extends WindowClientOptions {}

/** What a server takes. */
export interface RouterDealerServerOptions extends PatternServerOptions {
  /** Whether a peer takes over the routing id of another one that is connected (true), or is refused. */
  readonly handover?: boolean | undefined
}

// 128 requests of the greatest length still fit into a request's limit.
const joinLimit = 128

const makeWindow = Effect.fnUntraced(function*(options: RouterDealerClientOptions, announced: AnnouncedAddresses | undefined) {
  const endpoints = yield* readEndpoints(options, "connect")
  const binding = endpoints.find(({ attach }) => attach === "bind")
  if (binding !== undefined && announced === undefined) {
    return yield* unusable(binding.address, "a client renews its socket and cannot bind one address")
  }
  const zmq = yield* loadZeromq
  const settings = settingsOf(options)
  const timeoutMs = millis(options.requestTimeout ?? "30 seconds")
  const open: OpenCarrier = (peers, listener) =>
    Effect.map(
      openZmqSocket(zmq, {
        kind: "dealer",
        seals: options.form !== "plain",
        endpoints: peers,
        settings,
        sendTimeoutMs: timeoutMs,
        // What is unsent when a life ends has been given up, or is sent again by the next one.
        lingerMs: 0,
        peersChange: announced !== undefined,
        hear: hearing(listener)
      }),
      (socket) => ({ client: socket.routingId, send: carrierSend(socket), reach: socket.reach, admission: socket.admission })
    )
  return {
    ...windowOf(options),
    label: labelOf(endpoints),
    addresses: announced?.current ?? Effect.succeed(endpoints),
    open,
    timeoutMs,
    retry: options.retry ?? defaultRetry(3),
    joinMax: Math.min(options.joinMax ?? joinLimit, joinLimit)
  }
})

const makeClient = Effect.fnUntraced(function*(
  options: RouterDealerClientOptions,
  announced?: AnnouncedAddresses
): Effect.fn.Return<ChargeClient["Service"], TransportError | Config.ConfigError, Scope.Scope> {
  const wire = yield* wireOf(options)
  return chargeClient(yield* makeWindowClient({ ...(yield* makeWindow(options, announced)), ...speaking(options, wire), ...charges }))
})

const makeServer = (options: RouterDealerServerOptions, announced?: AnnouncedAddresses) =>
  makeRouterServer({ ...options, transport: "router-dealer" }, announced)

/** A client of a service with any messages: many requests in flight on one DEALER socket. Its sockets close with the scope. */
const client = <Req, Rep, Err = never>(
  options: ServiceMessages<Req, Rep, Err> & ServiceOptions & Omit<RouterDealerClientOptions, "wire">
): Effect.Effect<ServiceClient<Req, Rep, Err>, TransportError, Scope.Scope> =>
  makeTypedClient(options, options, (wire) => Effect.flatMap(makeWindow(options, undefined), (window) => makeWindowClient({ ...window, ...textRequests, wire })))

/** Serves any messages at a ROUTER until interrupted, each request answered as soon as its handler is done. */
const serve = <Req, Rep, Err = never>(
  options: ServiceMessages<Req, Rep, Err> & Omit<RouterDealerServerOptions, "wire">,
  handler: ServiceHandler<Req, Rep, Err>
): Effect.Effect<never, TransportError> =>
  Effect.flatMap(openRouterPlace({ ...options, transport: "router-dealer" }), (place) => serveApp(options, place, makeTypedReplies(options, handler, place.label)))

/** Both sides of the pattern: `client` and `serve` for any messages, the others for charges (`ZmqTransport` has them as layers). */
export const RouterDealer = { makeClient, makeServer, client, serve } as const
