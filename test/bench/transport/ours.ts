/** The same messages over Purser's patterns: as a service, as a service in batches, as charges. */
import { ChargeClient, ChargeServer } from "@purser/core"
import { Broker, Majordomo, PushPull, ReqRep, RouterDealer, ZmqTransport } from "@purser/transport-zeromq"
import { Context, Effect, Layer, Logger, type Scope } from "effect"
import { inLoops } from "../support/loops.ts"
import { chargeOf, order, type Order, orderOf, paid, type Pattern, type Program, replyTo, window, windowOf } from "./messages.ts"

const services = { "router-dealer": RouterDealer, "push-pull": PushPull, "req-rep": ReqRep, majordomo: Majordomo } as const
const layers = {
  "router-dealer": [ZmqTransport.layerRouterDealerClient, ZmqTransport.layerRouterDealerServer],
  "push-pull": [ZmqTransport.layerPushPullClient, ZmqTransport.layerPushPullServer],
  "req-rep": [ZmqTransport.layerReqRepClient, ZmqTransport.layerReqRepServer],
  "pub-sub": [ZmqTransport.layerPubSubClient, ZmqTransport.layerPubSubServer],
  majordomo: [ZmqTransport.layerMajordomoClient, ZmqTransport.layerMajordomoServer]
} as const

const service = "bench"

/** A publisher asks nobody in particular, so that it has charges and no service. */
const serviceOf = (pattern: Pattern) => {
  if (pattern === "pub-sub") throw new Error("pub-sub has no service: measure its charges")
  return services[pattern]
}

/** Serves for ever. */
export const serveOurs = (pattern: Pattern, program: Program, endpoint: string): Effect.Effect<unknown, unknown> =>
  // The broker is in its worker's process: its time counts among the server's. What it tells would be read as a result.
  pattern === "majordomo" ? Effect.scoped(Effect.andThen(Broker.open({ endpoint }), work(pattern, program, endpoint))).pipe(Effect.provide(Logger.layer([]))) : work(pattern, program, endpoint)

const work = (pattern: Pattern, program: Program, endpoint: string): Effect.Effect<unknown, unknown> =>
  program === "charges"
    ? Effect.flatMap(ChargeServer, (server) => server.serve((request) => Effect.succeed(paid(request)))).pipe(Effect.provide(layers[pattern][1]({ endpoint })))
    : serviceOf(pattern).serve({ ...order, endpoint, service }, (request) => Effect.succeed(replyTo(request)))

/** One caller with a batch after the other: a program that bills reads its rows so. */
const batchOf = 10_000
const inBatches = (requestAll: (orders: ReadonlyArray<Order>) => Effect.Effect<unknown, unknown>) => (count: number) => {
  let at = 0
  return Effect.whileLoop({
    while: () => at < count,
    body: () => {
      const from = at
      at = Math.min(count, at + batchOf)
      return requestAll(Array.from({ length: at - from }, (_, index) => orderOf(from + index)))
    },
    step: () => undefined
  })
}

/** Sends a number of messages and waits for the answers. */
export const connectOurs = Effect.fnUntraced(function*(pattern: Pattern, program: Program, endpoint: string, most: number): Effect.fn.Return<(count: number) => Effect.Effect<unknown, unknown>, unknown, Scope.Scope> {
  const concurrency = windowOf(pattern)
  const options = { endpoint, window, sockets: 1 }
  if (program === "charges") {
    const client = Context.get(yield* Layer.build(layers[pattern][0](options)), ChargeClient)
    // Made before: to check a charge's fields is its maker's work, not the transport's.
    const charges = Array.from({ length: most }, (_, index) => chargeOf(index))
    return (count) => inLoops(count, concurrency, (index) => client.submit(charges[index]!))
  }
  const { request, requestAll } = yield* serviceOf(pattern).client({ ...order, ...options, service })
  if (program === "batch") return inBatches(requestAll)
  return (count) => inLoops(count, concurrency, (index) => request(orderOf(index)))
})
