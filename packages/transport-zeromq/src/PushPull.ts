/**
 * The PUSH/PULL pattern: producers push requests to pulling workers, and answers come back over a second pair of
 * sockets, from the workers' PUSH to the producer's PULL.
 *
 * Each request carries its producer's return address, so that several producers share the workers. The answer is the
 * acknowledgement: it names the request, never a count of messages, and what is not acknowledged at its deadline is
 * delivered again, to whichever worker is next.
 */
import { type ChargeClient, type ChargeServer, type TransportError, Unauthorized } from "@purser/core"
import { type Config, Effect, Result, type Scope } from "effect"
import { randomUUID } from "node:crypto"
import { parseEndpoint } from "./Endpoint.ts"
import { type AnnouncedAddresses } from "./internal/addresses.ts"
import { chargeClient, charges, speaking, textRequests } from "./internal/chargeClient.ts"
import { carrierSend, hearing, type OpenCarrier } from "./internal/carrier.ts"
import { makeChargeServer } from "./internal/chargeServer.ts"
import { makeEar } from "./internal/ear.ts"
import { senderOf } from "./internal/frameSeal.ts"
import { loadZeromq } from "./internal/native.ts"
import { labelOf, mayBeRemote, millis, readEndpoints, settingsOf, unusable, windowOf, wireOf } from "./internal/patternOptions.ts"
import { serveApp, type ServerPlace } from "./internal/replyServer.ts"
import { defaultReturnAddress, openReturns } from "./internal/returns.ts"
import { openServerSocket } from "./internal/serverSocket.ts"
import { makeTypedClient } from "./internal/typedService.ts"
import { makeTypedReplies } from "./internal/typedWire.ts"
import { makeWindowClient } from "./internal/windowClient.ts"
import { defaultRetry, type PatternServerOptions, type WindowClientOptions } from "./PatternOptions.ts"
import type { ServiceClient, ServiceHandler, ServiceMessages, ServiceOptions } from "./ServiceMessages.ts"
import { openZmqSocket } from "./ZmqSocket.ts"

/** What a producer takes. Requests are joined into one frame by up to an eighth of the window, and no more than 128: a frame goes to one worker. */
export interface PushPullClientOptions extends WindowClientOptions {
  /** Where this producer takes answers in; one of its own. Needed where workers are on other machines, else a free one. */
  readonly returnEndpoint?: string | undefined
}

/** What a worker takes. */
export interface PushPullServerOptions extends PatternServerOptions {
  /** Where answers to plain messages go, which carry no return address. Without it they are served and not answered. */
  readonly ackEndpoint?: string | undefined
  /** Producers that a worker holds a connection to (64); the one that was silent for the longest makes room. */
  readonly producersMax?: number | undefined
}

// 128 requests of the greatest length still fit into a request's limit.
const joinLimit = 128
/** Frames that a full window makes at least, so that it is shared out among workers. */
const framesMin = 8

const makeWindow = Effect.fnUntraced(function*(options: PushPullClientOptions, announced: AnnouncedAddresses | undefined) {
  const endpoints = yield* readEndpoints(options, "connect")
  const zmq = yield* loadZeromq
  const settings = settingsOf(options)
  const timeoutMs = millis(options.requestTimeout ?? "30 seconds")
  const binds = announced === undefined && endpoints.some(({ attach }) => attach === "bind")
  const given = options.returnEndpoint ?? defaultReturnAddress(endpoints)
  if (given === undefined) {
    return yield* unusable(labelOf(endpoints), "workers on other machines need a return endpoint that they can reach: PURSER_RETURN_ENDPOINT")
  }
  if (options.form === "plain" && options.returnEndpoint === undefined) {
    return yield* unusable(labelOf(endpoints), "plain messages name no return address: workers must know it, as PURSER_RETURN_ENDPOINT")
  }
  const back = yield* Effect.fromResult(parseEndpoint(given, { attach: "bind", allowPlain: mayBeRemote(options) }))
  if (back.attach === "connect" || /^tcp:\/\/(?:\*|0\.0\.0\.0|\[::\]):/.test(back.address)) {
    return yield* unusable(given, "workers are told this address: it must be bound, and name one interface")
  }

  const open: OpenCarrier = Effect.fnUntraced(function*(peers, listener) {
    // A name of its own for each life, as the other transports give by a port: in one process nobody reconnects to a name.
    const own = options.returnEndpoint === undefined && back.address.startsWith("inproc://")
    const address = own ? defaultReturnAddress(endpoints) ?? back.address : back.address
    const pull = yield* openZmqSocket(zmq, { kind: "pull", endpoints: [{ ...back, address }], settings, sendTimeoutMs: 0, lingerMs: 0, hear: hearing(listener) })
    const push = yield* openZmqSocket(zmq, {
      kind: "push",
      seals: options.form !== "plain",
      endpoints: peers,
      settings,
      sendTimeoutMs: timeoutMs,
      // What is unsent when a life ends has been given up, or is sent again by the next one.
      lingerMs: 0,
      peersChange: announced !== undefined
    })
    const send = options.form === "plain" ? carrierSend(push) : carrierSend(push, pull.bound[0]!)
    return { client: randomUUID(), send, reach: push.reach, admission: push.admission }
  })
  const limits = windowOf(options)
  return {
    ...limits,
    label: labelOf(endpoints),
    addresses: announced?.current ?? Effect.succeed(endpoints),
    open,
    timeoutMs,
    retry: options.retry ?? defaultRetry(3),
    joinMax: Math.min(options.joinMax ?? Math.ceil(limits.window / framesMin), joinLimit),
    // Workers find a bound address again by themselves, and another one could not be bound in its place at once.
    silencesMax: binds ? undefined : limits.silencesMax
  }
})

const makeClient = Effect.fnUntraced(function*(
  options: PushPullClientOptions,
  announced?: AnnouncedAddresses
): Effect.fn.Return<ChargeClient["Service"], TransportError | Config.ConfigError, Scope.Scope> {
  const wire = yield* wireOf(options)
  return chargeClient(yield* makeWindowClient({ ...(yield* makeWindow(options, announced)), ...speaking(options, wire), ...charges }))
})

const openPlace = Effect.fnUntraced(function*(
  options: PushPullServerOptions,
  announced?: AnnouncedAddresses
): Effect.fn.Return<ServerPlace, TransportError> {
  const endpoints = yield* readEndpoints(options, "bind")
  const settings = settingsOf(options)
  const allowPlain = mayBeRemote(options)
  const acknowledge = options.ackEndpoint === undefined
    ? undefined
    : yield* Effect.fromResult(parseEndpoint(options.ackEndpoint, { attach: "connect", allowPlain }))
  const zmq = yield* loadZeromq
  const label = labelOf(endpoints)
  return {
    transport: "push-pull",
    label,
    openDesk: Effect.gen(function*() {
      const returns = yield* openReturns({ zmq, settings, allowPlain, acknowledge, label, producersMax: options.producersMax ?? 64 })
      const ear = makeEar()
      const pull = yield* openServerSocket(zmq, { kind: "pull", endpoints, settings, announced, hear: ear.hear })
      return {
        direct: {
          listen: ear.listen,
          open: (frames) => {
            const { publicKey, refused } = senderOf(frames)
            const back = refused === null && frames.length > 1 && frames[0]!.length > 0 ? returns.known(frames[0]!.toString("utf8"), publicKey) : undefined
            return back === undefined ? undefined : { _tag: "Arrival", back, payload: frames.slice(1) }
          }
        },
        incoming: pull.incoming,
        flush: returns.flush,
        open: (frames) =>
          Effect.gen(function*() {
            // One frame is a plain message; of two, the first is the return address, which a plain one may leave empty.
            const { publicKey, refused } = senderOf(frames)
            if (refused !== null) return { _tag: "Unserved" as const, reason: new Unauthorized({ detail: refused }) }
            const plain = frames.length === 1 || frames[0]!.length === 0
            const back = plain ? returns.acknowledge : yield* returns.to(frames[0]!.toString("utf8"), publicKey)
            // Its answer could not go back.
            if (Result.isFailure(back)) return { _tag: "Unserved" as const, reason: back.failure.reason }
            return { _tag: "Arrival" as const, back: back.success, payload: frames.length === 1 ? frames : frames.slice(1) }
          })
      }
    })
  }
})

const makeServer = Effect.fnUntraced(function*(
  options: PushPullServerOptions,
  announced?: AnnouncedAddresses
): Effect.fn.Return<ChargeServer["Service"], TransportError | Config.ConfigError> {
  return makeChargeServer(options, { ...(yield* openPlace(options, announced)), wire: yield* wireOf(options) })
})

/**
 * A producer of any messages: each is pushed to one worker, its reply is the acknowledgement, and without one it is pushed
 * again. Its sockets close with the scope.
 */
const client = <Req, Rep, Err = never>(
  options: ServiceMessages<Req, Rep, Err> & ServiceOptions & Omit<PushPullClientOptions, "wire">
): Effect.Effect<ServiceClient<Req, Rep, Err>, TransportError, Scope.Scope> =>
  makeTypedClient(options, options, (wire) => Effect.flatMap(makeWindow(options, undefined), (window) => makeWindowClient({ ...window, ...textRequests, wire })))

/** Works on any messages until interrupted. */
const serve = <Req, Rep, Err = never>(
  options: ServiceMessages<Req, Rep, Err> & Omit<PushPullServerOptions, "wire" | "ackEndpoint">,
  handler: ServiceHandler<Req, Rep, Err>
): Effect.Effect<never, TransportError> =>
  Effect.flatMap(openPlace(options), (place) => serveApp(options, place, makeTypedReplies(options, handler, place.label)))

/** Both sides of the pattern: `client` and `serve` for any messages, the others for charges (`ZmqTransport` has them as layers). */
export const PushPull = { makeClient, makeServer, client, serve } as const
