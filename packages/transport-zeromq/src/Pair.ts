/**
 * The PAIR pattern: a client and a server in one process, over one in-process connection. It is the least that a socket
 * can be: one peer, no address outside, nothing that another program could reach.
 */
import type { ChargeClient, ChargeServer, TransportError } from "@purser/core"
import { type Config, Effect, type Scope } from "effect"
import { randomUUID } from "node:crypto"
import type { AnnouncedAddresses } from "./internal/addresses.ts"
import { carrierSend, hearing } from "./internal/carrier.ts"
import { chargeClient, charges } from "./internal/chargeClient.ts"
import { makeChargeServer } from "./internal/chargeServer.ts"
import { loadZeromq } from "./internal/native.ts"
import { millis, settingsOf, windowOf, wireOf } from "./internal/patternOptions.ts"
import { openServerSocket } from "./internal/serverSocket.ts"
import { openPair, pairEndpoint, type TypedPair, type TypedPairOptions } from "./internal/typedPair.ts"
import { makeWindowClient } from "./internal/windowClient.ts"
import { defaultRetry, type PatternServerOptions, type WindowClientOptions } from "./PatternOptions.ts"
import { openZmqSocket } from "./ZmqSocket.ts"

export type { TypedPair, TypedPairOptions }

/** What a client takes; its one `endpoint` is `inproc://` and a name. Requests are joined by up to 64 into one frame. */
export interface PairClientOptions extends Omit<WindowClientOptions, "endpoint" | "allowPlain"> {
  readonly endpoint?: string | undefined
}

/** What a server takes; its one `endpoint` is `inproc://` and a name. */
export interface PairServerOptions extends Omit<PatternServerOptions, "endpoint" | "allowPlain"> {
  readonly endpoint?: string | undefined
}

const joinLimit = 128
const defaultPairEndpoint = "inproc://purser"

const makeClient = Effect.fnUntraced(function*(
  options: PairClientOptions,
  announced?: AnnouncedAddresses
): Effect.fn.Return<ChargeClient["Service"], TransportError | Config.ConfigError, Scope.Scope> {
  const endpoint = yield* Effect.fromResult(pairEndpoint(options.endpoint ?? defaultPairEndpoint, "connect"))
  const zmq = yield* loadZeromq
  const settings = settingsOf(options)
  const timeoutMs = millis(options.requestTimeout ?? "30 seconds")
  const window = yield* makeWindowClient({
    ...windowOf(options),
    wire: yield* wireOf(options),
    ...charges,
    label: endpoint.address,
    addresses: announced?.current ?? Effect.succeed([endpoint]),
    open: (peers, listener) =>
      Effect.map(
        openZmqSocket(zmq, { kind: "pair", endpoints: peers, settings, sendTimeoutMs: timeoutMs, lingerMs: 0, hear: hearing(listener) }),
        (socket) => ({ client: randomUUID(), send: carrierSend(socket), reach: socket.reach })
      ),
    timeoutMs,
    retry: options.retry ?? defaultRetry(3),
    joinMax: Math.min(options.joinMax ?? 64, joinLimit)
  })
  return chargeClient(window)
})

const makeServer = Effect.fnUntraced(function*(
  options: PairServerOptions,
  announced?: AnnouncedAddresses
): Effect.fn.Return<ChargeServer["Service"], TransportError | Config.ConfigError> {
  const endpoint = yield* Effect.fromResult(pairEndpoint(options.endpoint ?? defaultPairEndpoint, "bind"))
  const zmq = yield* loadZeromq
  return makeChargeServer(options, {
    transport: "pair",
    wire: yield* wireOf(options),
    label: endpoint.address,
    openDesk: Effect.map(
      openServerSocket(zmq, { kind: "pair", endpoints: [endpoint], settings: settingsOf(options), announced }),
      (socket) => {
        const back = { key: "", whole: false, send: (text: string) => socket.send([text]) }
        return {
          incoming: socket.incoming,
          flush: socket.flush,
          open: (frames) => Effect.succeed({ _tag: "Arrival" as const, back, payload: frames })
        }
      }
    )
  })
})

/** Both sides of the pattern for charges (`ZmqTransport` has them as layers), and one end for messages of any schema. */
export const Pair = { makeClient, makeServer, open: openPair } as const
