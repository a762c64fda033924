/**
 * The PUB/SUB pattern: a client publishes requests to every worker that subscribes, and answers come back over a second
 * pair of sockets, from the workers' PUSH to the client's PULL.
 *
 * Every worker sees every request; the ledger lets one of them charge, and the others say what the ledger says. A client
 * takes the first answer that is a fact, so that "another worker has it" never comes before the outcome. It spends work to
 * gain one thing: the request is with a living worker at once, whichever of them dies.
 */
import { type ChargeClient, ChargeServer, type TransportError, Unauthorized } from "@purser/core"
import { type Config, Effect, Result, type Scope } from "effect"
import { randomUUID } from "node:crypto"
import { parseEndpoint } from "./Endpoint.ts"
import type { AnnouncedAddresses } from "./internal/addresses.ts"
import { chargeClient, charges } from "./internal/chargeClient.ts"
import { makeChargeServer } from "./internal/chargeServer.ts"
import { makeEar } from "./internal/ear.ts"
import { senderOf } from "./internal/frameSeal.ts"
import { loadZeromq } from "./internal/native.ts"
import { speakWithOneVoice } from "./internal/oneVoice.ts"
import { labelOf, mayBeRemote, millis, readEndpoints, settingsOf, unusable, windowOf, wireOf } from "./internal/patternOptions.ts"
import { openPubSubCarrier } from "./internal/pubSubCarrier.ts"
import { defaultReturnAddress, openReturns } from "./internal/returns.ts"
import { openServerSocket } from "./internal/serverSocket.ts"
import {
  type MessageSchema, openPublisher, type Received, subscription, type SubscriptionOptions, type TypedPublisher, type TypedPubSubOptions
} from "./internal/typedPubSub.ts"
import { makeWindowClient } from "./internal/windowClient.ts"
import { defaultRetry, type PatternServerOptions, type WindowClientOptions } from "./PatternOptions.ts"

export type { MessageSchema, Received, SubscriptionOptions, TypedPublisher, TypedPubSubOptions }

/** What a publishing client takes. Requests are joined by up to 128 into one frame. */
export interface PubSubClientOptions extends WindowClientOptions {
  /** Where this client takes answers in; one of its own. Needed where workers are on other machines, else a free one. */
  readonly returnEndpoint?: string | undefined
  /**
   * Workers that a request reaches at least (1). A client counts its connections; behind a forwarder it sees one, and
   * has to be told, so that one worker's "another worker has it" is not taken for the last word.
   */
  readonly workersMin?: number | undefined
}

/** What a subscribing worker takes. */
export interface PubSubServerOptions extends PatternServerOptions {
  /** Where answers to plain messages go, which carry no return address. Without it they are served and not answered. */
  readonly ackEndpoint?: string | undefined
  /** Clients that a worker holds a connection to (64); the one that was silent for the longest makes room. */
  readonly producersMax?: number | undefined
}

// 128 requests of the greatest length still fit into a request's limit.
const joinLimit = 128

const makeClient = Effect.fnUntraced(function*(
  options: PubSubClientOptions,
  announced?: AnnouncedAddresses
): Effect.fn.Return<ChargeClient["Service"], TransportError | Config.ConfigError, Scope.Scope> {
  const endpoints = yield* readEndpoints(options, "connect")
  const zmq = yield* loadZeromq
  const timeoutMs = millis(options.requestTimeout ?? "30 seconds")
  const binds = announced === undefined && endpoints.some(({ attach }) => attach === "bind")
  const given = options.returnEndpoint ?? defaultReturnAddress(endpoints)
  if (given === undefined) {
    return yield* unusable(labelOf(endpoints), "workers on other machines need a return endpoint that they can reach: PURSER_RETURN_ENDPOINT")
  }
  const back = yield* Effect.fromResult(parseEndpoint(given, { attach: "bind", allowPlain: mayBeRemote(options) }))
  if (back.attach === "connect" || /^tcp:\/\/(?:\*|0\.0\.0\.0|\[::\]):/.test(back.address)) {
    return yield* unusable(given, "workers are told this address: it must be bound, and name one interface")
  }
  // A name of its own for each life: in one process nobody reconnects to a name.
  const own = options.returnEndpoint === undefined && back.address.startsWith("inproc://")
  const limits = windowOf(options)
  const joinMax = Math.min(options.joinMax ?? joinLimit, joinLimit)
  const wire = yield* wireOf(options)
  const window = yield* makeWindowClient({
    ...limits,
    wire,
    ...charges,
    label: labelOf(endpoints),
    addresses: announced?.current ?? Effect.succeed(endpoints),
    open: openPubSubCarrier({
      zmq,
      settings: settingsOf(options),
      wire,
      timeoutMs,
      joinMax,
      window: limits.window,
      workersMin: Math.max(1, options.workersMin ?? 1),
      back: () => ({ ...back, address: own ? defaultReturnAddress(endpoints) ?? back.address : back.address })
    }),
    timeoutMs,
    retry: options.retry ?? defaultRetry(3),
    joinMax,
    // Workers find a bound address again by themselves, and another one could not be bound in its place at once.
    silencesMax: binds ? undefined : limits.silencesMax
  })
  return chargeClient(window)
})

const makeServer = Effect.fnUntraced(function*(
  options: PubSubServerOptions,
  announced?: AnnouncedAddresses
): Effect.fn.Return<ChargeServer["Service"], TransportError | Config.ConfigError> {
  const endpoints = yield* readEndpoints(options, "bind")
  const settings = settingsOf(options)
  const allowPlain = mayBeRemote(options)
  const acknowledge = options.ackEndpoint === undefined
    ? undefined
    : yield* Effect.fromResult(parseEndpoint(options.ackEndpoint, { attach: "connect", allowPlain }))
  const zmq = yield* loadZeromq
  const label = labelOf(endpoints)
  const server = makeChargeServer(options, {
    transport: "pub-sub",
    wire: yield* wireOf(options),
    label,
    openDesk: Effect.gen(function*() {
      // A client tells workers apart by it, so that one that answers twice does not count as two.
      const speaker = randomUUID()
      const returns = yield* openReturns({ zmq, settings, allowPlain, acknowledge, label, producersMax: options.producersMax ?? 64, speaker })
      const ear = makeEar()
      const subscriber = yield* openServerSocket(zmq, { kind: "subscriber", endpoints, settings, announced, hear: ear.hear })
      return {
        direct: {
          listen: ear.listen,
          open: (frames) => {
            const { publicKey, refused } = senderOf(frames)
            const back = refused === null && frames.length > 1 ? returns.known(frames[0]!.toString("utf8"), publicKey) : undefined
            return back === undefined ? undefined : { _tag: "Arrival", back, payload: frames.slice(1) }
          }
        },
        incoming: subscriber.incoming,
        flush: returns.flush,
        open: (frames) =>
          Effect.gen(function*() {
            const { publicKey, refused } = senderOf(frames)
            if (refused !== null) return { _tag: "Unserved" as const, reason: new Unauthorized({ detail: refused }) }
            // A plain message is one frame, or comes after a topic, which an address is not.
            const first = frames[0]!.toString("utf8")
            const plain = frames.length === 1 || !first.includes("://")
            const back = plain ? returns.acknowledge : yield* returns.to(first, publicKey)
            // Its answer could not go back.
            if (Result.isFailure(back)) return { _tag: "Unserved" as const, reason: back.failure.reason }
            return { _tag: "Arrival" as const, back: back.success, payload: frames.length === 1 ? frames : frames.slice(1) }
          })
      }
    })
  })
  return ChargeServer.of({ serve: (handler) => server.serve(speakWithOneVoice(handler)) })
})

/** Both sides of the pattern for charges (`ZmqTransport` has them as layers), and a publisher and subscribers for messages of any schema. */
export const PubSub = { makeClient, makeServer, publisher: openPublisher, subscribe: subscription } as const
