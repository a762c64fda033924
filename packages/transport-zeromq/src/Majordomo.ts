/**
 * The Majordomo pattern (18/MDP): clients and workers that know only a broker, services by name, workers that come and go.
 *
 * At-least-once: the broker gives what a lost worker had to another one, and a client asks again after its deadline. The
 * names of workers and of deliveries are part of nothing that a payment depends on. The broker is `Broker`.
 */
import { type ChargeClient, ChargeServer, type TransportError } from "@purser/core"
import { type Config, type Duration, Effect, Fiber, type Scope } from "effect"
import type { AnnouncedAddresses } from "./internal/addresses.ts"
import { hearing, type OpenCarrier } from "./internal/carrier.ts"
import { chargeClient, charges, speaking, textRequests } from "./internal/chargeClient.ts"
import { makeChargeReplies } from "./internal/chargeReplies.ts"
import { heartbeatMsOf } from "./internal/heartbeat.ts"
import { majordomoDesk } from "./internal/majordomoDesk.ts"
import { openMajordomoWorker } from "./internal/majordomoWorker.ts"
import { mdp, readAtClient } from "./internal/mdp.ts"
import { loadZeromq } from "./internal/native.ts"
import { labelOf, millis, readEndpoints, settingsOf, unusable, windowOf, wireOf } from "./internal/patternOptions.ts"
import type { ReplyApp } from "./internal/replyApp.ts"
import { serveApp } from "./internal/replyServer.ts"
import { makeTypedClient } from "./internal/typedService.ts"
import { makeTypedReplies } from "./internal/typedWire.ts"
import { makeWindowClient } from "./internal/windowClient.ts"
import { defaultRetry, type PatternServerOptions, type WindowClientOptions } from "./PatternOptions.ts"
import type { ServiceClient, ServiceHandler, ServiceMessages, ServiceOptions } from "./ServiceMessages.ts"
import { type Frames, openZmqSocket } from "./ZmqSocket.ts"

/** What a client takes. Requests are joined by up to 16 into one message: a message goes to one worker. */
export interface MajordomoClientOptions extends WindowClientOptions {
  /** The name of the service ("charge"). */
  readonly service?: string | undefined
}

/** What a worker takes. It connects to its brokers. */
export interface MajordomoServerOptions extends PatternServerOptions {
  /** The name of the service ("charge"). */
  readonly service?: string | undefined
  /** Messages that a broker may give before the first is answered (32). */
  readonly credit?: number | undefined
  /** How often broker and worker tell each other that they live (1 second); the broker's setting should be the same. */
  readonly heartbeat?: Duration.Input | undefined
}

/** The service of charges when none is named. */
export const defaultService = "charge"

// 128 requests of the greatest length still fit into a request's limit.
const joinLimit = 128

const bodiesOf = (batch: ReadonlyArray<Frames>): ReadonlyArray<Frames> =>
  batch.flatMap((frames) => {
    const body = readAtClient(frames)?.body ?? frames
    return body.every(({ length }) => length === 0) ? [] : [body]
  })

const makeWindow = Effect.fnUntraced(function*(options: MajordomoClientOptions, announced: AnnouncedAddresses | undefined) {
  const endpoints = yield* readEndpoints(options, "connect")
  const binding = endpoints.find(({ attach }) => attach === "bind")
  if (binding !== undefined && announced === undefined) return yield* unusable(binding.address, "a client connects to its broker")
  const zmq = yield* loadZeromq
  const settings = settingsOf(options)
  const timeoutMs = millis(options.requestTimeout ?? "30 seconds")
  const service = options.service ?? defaultService
  const open: OpenCarrier = Effect.fnUntraced(function*(peers, listener) {
    const hear = hearing(listener)
    const socket = yield* openZmqSocket(zmq, {
      kind: "dealer",
      seals: options.form !== "plain",
      endpoints: peers,
      settings,
      sendTimeoutMs: timeoutMs,
      // What is unsent when a life ends has been given up, or is sent again by the next one.
      lingerMs: 0,
      peersChange: announced !== undefined,
      hear: (batch, more) => hear(bodiesOf(batch), more)
    })
    return { client: socket.routingId, send: (text: string) => socket.send(mdp.request(service, timeoutMs, [text])), reach: socket.reach, admission: socket.admission }
  })
  return {
    ...windowOf(options),
    label: labelOf(endpoints),
    addresses: announced?.current ?? Effect.succeed(endpoints),
    open,
    timeoutMs,
    retry: options.retry ?? defaultRetry(3),
    joinMax: Math.min(options.joinMax ?? 16, joinLimit)
  }
})

/** Reads the settings, and gives what serves an app until interrupted. */
const openWorker = Effect.fnUntraced(function*(options: MajordomoServerOptions, announced: AnnouncedAddresses | undefined) {
  const endpoints = yield* readEndpoints(options, "connect")
  const binding = endpoints.find(({ attach }) => attach === "bind")
  if (binding !== undefined && announced === undefined) return yield* unusable(binding.address, "a worker connects to its broker")
  const zmq = yield* loadZeromq
  const label = labelOf(endpoints)
  const serve = <Req, Reply, A, E>(app: ReplyApp<Req, Reply, A, E>): Effect.Effect<never, TransportError> =>
    Effect.scoped(Effect.gen(function*() {
      const worker = yield* openMajordomoWorker({
        zmq,
        settings: settingsOf(options),
        addresses: announced?.current ?? Effect.succeed(endpoints),
        service: options.service ?? defaultService,
        credit: Math.max(1, options.credit ?? 32),
        heartbeatMs: heartbeatMsOf(options.heartbeat)
      })
      // Draining is done here, where what is not done can be given back; the service then has nothing to wait for.
      const place = { transport: "majordomo", label, openDesk: Effect.succeed(majordomoDesk(worker)) }
      const drainMs = millis(options.drainTimeout ?? "10 seconds")
      const serving = yield* Effect.forkDetach(serveApp({ ...options, drainTimeout: 0 }, place, app))
      yield* Effect.addFinalizer(() =>
        worker.drain(drainMs).pipe(
          Effect.tap((done) => done ? Effect.void : Effect.andThen(worker.handBack, Effect.logWarning(`what was not done within ${drainMs} ms goes back to the broker`))),
          Effect.andThen(Fiber.interrupt(serving))
        )
      )
      return yield* Fiber.join(serving)
    }))
  return { label, serve }
})

const makeClient = Effect.fnUntraced(function*(
  options: MajordomoClientOptions,
  announced?: AnnouncedAddresses
): Effect.fn.Return<ChargeClient["Service"], TransportError | Config.ConfigError, Scope.Scope> {
  const wire = yield* wireOf(options)
  return chargeClient(yield* makeWindowClient({ ...(yield* makeWindow(options, announced)), ...speaking(options, wire), ...charges }))
})

const makeServer = Effect.fnUntraced(function*(
  options: MajordomoServerOptions,
  announced?: AnnouncedAddresses
): Effect.fn.Return<ChargeServer["Service"], TransportError | Config.ConfigError> {
  const wire = yield* wireOf(options)
  const { serve } = yield* openWorker(options, announced)
  return ChargeServer.of({ serve: (handler) => serve(makeChargeReplies(handler, wire)) })
})

/** A client of a service with any messages, by the service's name at the broker. Its socket closes with the scope. */
const client = <Req, Rep, Err = never>(
  options: ServiceMessages<Req, Rep, Err> & ServiceOptions & Omit<MajordomoClientOptions, "wire"> & { readonly service: string }
): Effect.Effect<ServiceClient<Req, Rep, Err>, TransportError, Scope.Scope> =>
  makeTypedClient(options, options, (wire) => Effect.flatMap(makeWindow(options, undefined), (window) => makeWindowClient({ ...window, ...textRequests, wire })))

/** Works for a service with any messages until interrupted. */
const serve = <Req, Rep, Err = never>(
  options: ServiceMessages<Req, Rep, Err> & Omit<MajordomoServerOptions, "wire"> & { readonly service: string },
  handler: ServiceHandler<Req, Rep, Err>
): Effect.Effect<never, TransportError> =>
  Effect.flatMap(openWorker(options, undefined), (worker) => worker.serve(makeTypedReplies(options, handler, worker.label)))

/** Both sides of the pattern: `client` and `serve` for any messages, the others for charges (`ZmqTransport` has them as layers). */
export const Majordomo = { makeClient, makeServer, client, serve } as const
