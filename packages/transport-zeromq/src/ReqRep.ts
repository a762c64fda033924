/**
 * The REQ/REP pattern: a pool of Lazy Pirate clients, and a server that answers many of them on one socket.
 *
 * At-least-once: a client that hears nothing sends again, so that a request can be handled several times. That one
 * charge comes of it is the ledger's work, never this module's.
 */
import { ChargeClient, ChargeServer, Closed, TransportError, Wire, type WireCodec } from "@purser/core"
import { type Config, Duration, Effect, Schedule, type Scope, Semaphore } from "effect"
import { type Endpoint, parseEndpoints } from "./Endpoint.ts"
import type { AnnouncedAddresses } from "./internal/addresses.ts"
import { makeChargeReplies } from "./internal/chargeReplies.ts"
import { loadZeromq } from "./internal/native.ts"
import { serveReplies } from "./internal/replyService.ts"
import { makeRequestPool } from "./internal/requestPool.ts"
import { defaultSocketSettings, type SocketSettings } from "./SocketSettings.ts"
import { openZmqSocket } from "./ZmqSocket.ts"

/** What both sides take. */
export interface ReqRepOptions {
  /** Addresses, as a list or separated by commas. Servers bind and clients connect; `>` in front makes a server connect. */
  readonly endpoint?: string | ReadonlyArray<string> | undefined
  /** Lets addresses be used that other machines reach, without encryption. */
  readonly allowPlain?: boolean | undefined
  readonly socket?: Partial<SocketSettings> | undefined
  /** The wire's codec; else it is made from the configuration. */
  readonly wire?: WireCodec | undefined
}

/** What a client takes. */
export interface ReqRepClientOptions extends ReqRepOptions {
  /** How long one attempt waits for its answer (30 seconds). */
  readonly requestTimeout?: Duration.Input | undefined
  /** When to send again after silence; its end is the end of the attempts. Else backing off from 100 ms, three times. */
  readonly retry?: Schedule.Schedule<unknown, unknown> | undefined
  /** REQ sockets at the most (16); each has one frame on its way. */
  readonly sockets?: number | undefined
  /** Requests that may wait for a socket (10,000). */
  readonly waitingMax?: number | undefined
  /** Requests joined into one frame at the most (16; 128 is the limit). */
  readonly joinMax?: number | undefined
}

/** What a server takes. */
export interface ReqRepServerOptions extends ReqRepOptions {
  /** Handler calls at a time (256). */
  readonly concurrency?: number | undefined
  /** Requests taken in beyond those being handled (4,096). */
  readonly waitingMax?: number | undefined
  /** A longer request is refused with an answer (1 MiB). */
  readonly requestMaxBytes?: number | undefined
  /** How long a closing server waits for the requests that it has taken (10 seconds). */
  readonly drainTimeout?: Duration.Input | undefined
}

/** The endpoint of both sides when none is given. */
export const defaultEndpoint = "tcp://127.0.0.1:5555"

// 128 requests of the greatest length still fit into a request's limit.
const joinLimit = 128
const backoffMax = Duration.seconds(5)

/** Backing off from 100 ms to 5 s with jitter, `times` times. */
export const defaultRetry = (times: number): Schedule.Schedule<unknown, unknown> =>
  Schedule.exponential(100).pipe(
    Schedule.modifyDelay(({ duration }) => Effect.succeed(Duration.min(duration, backoffMax))),
    Schedule.jittered,
    Schedule.upTo({ times })
  )

const labelOf = (endpoints: ReadonlyArray<Endpoint>) => endpoints.map(({ address }) => address).join(",")
const millis = (input: Duration.Input) => Duration.toMillis(Duration.fromInputUnsafe(input))
const settingsOf = (options: ReqRepOptions): SocketSettings => ({ ...defaultSocketSettings, ...options.socket })
const wireOf = (options: ReqRepOptions) => options.wire === undefined ? Wire.fromConfig : Effect.succeed(options.wire)
const readEndpoints = (options: ReqRepOptions, attach: Endpoint["attach"]) =>
  Effect.fromResult(parseEndpoints(options.endpoint ?? defaultEndpoint, { attach, allowPlain: options.allowPlain ?? false }))

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

const makeServer = Effect.fnUntraced(function*(
  options: ReqRepServerOptions,
  announced?: AnnouncedAddresses
): Effect.fn.Return<ChargeServer["Service"], TransportError | Config.ConfigError> {
  const endpoints = yield* readEndpoints(options, "bind")
  const label = labelOf(endpoints)
  const settings = settingsOf(options)
  const zmq = yield* loadZeromq
  const wire = yield* wireOf(options)
  const concurrency = options.concurrency ?? 256
  const announce = (address: string) => {
    const endpoint: Endpoint = { attach: "connect", address, ipv6: address.startsWith("tcp://[") }
    return announced === undefined ? Effect.void : Effect.acquireRelease(announced.announce(endpoint), () => announced.withdraw(endpoint))
  }
  return ChargeServer.of({
    serve: (handler) =>
      Effect.scoped(Effect.gen(function*() {
        // A mandatory send to a full or absent peer fails at once: one peer must not hold up the others.
        const socket = yield* openZmqSocket(zmq, { kind: "router", endpoints, settings, sendTimeoutMs: 0, lingerMs: settings.lingerMs })
        const connected = endpoints.filter(({ attach }) => attach === "connect").map(({ address }) => address)
        yield* Effect.annotateLogs(Effect.logDebug("serving charges"), { endpoints: [...socket.bound, ...connected].join(",") })
        const app = makeChargeReplies(handler, { wire, label, concurrency, permits: yield* Semaphore.make(concurrency) })
        yield* Effect.forEach(socket.bound, announce, { discard: true })
        return yield* serveReplies(socket, app, {
          label,
          takenMax: concurrency + (options.waitingMax ?? 4096),
          requestMaxBytes: options.requestMaxBytes ?? 1024 * 1024,
          drainMs: millis(options.drainTimeout ?? "10 seconds")
        })
      }))
  })
})

/** Both sides of the pattern, for charges. `ZmqTransport` has them as layers. */
export const ReqRep = { makeClient, makeServer } as const
