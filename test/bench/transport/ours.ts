/** The same messages over Purser's patterns: as a service, as a service in batches, as charges. */
import { ChargeClient, ChargeServer } from "@purser/core"
import { Broker, Majordomo, PubSub, PushPull, ReqRep, RouterDealer, ZmqTransport } from "@purser/transport-zeromq"
import { Context, Effect, Latch, Layer, Logger, Schema, type Scope, Stream } from "effect"
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

/** A publisher asks nobody in particular: what it publishes and what is published back bear a number, as raw zeromq.js's do. */
const published = {
  request: Schema.Struct({ id: Schema.Int, ...order.request.fields }),
  reply: Schema.Struct({ id: Schema.Int, ...order.reply.fields })
}

const servePublished = (endpoint: string, back: string) =>
  Effect.scoped(Effect.gen(function*() {
    const { publish } = yield* PubSub.publisher({ endpoint: back, schema: published.reply })
    yield* PubSub.subscribe({ endpoint, schema: published.request }).pipe(Stream.runForEachArray((all) =>
      Effect.forEach(all, (received) => received._tag === "Message" ? publish("replies", { id: received.message.id, ...replyTo(received.message) }) : Effect.die(received), { discard: true })
    ))
  }))

const connectPublished = Effect.fnUntraced(function*(endpoint: string, back: string) {
  const { publish } = yield* PubSub.publisher({ endpoint, schema: published.request })
  const open = new Set<number>()
  const heard = yield* Latch.make(false)
  yield* PubSub.subscribe({ endpoint: back, schema: published.reply }).pipe(
    Stream.runForEachArray((all) =>
      Effect.sync(() => {
        for (const received of all) if (received._tag === "Message") open.delete(received.message.id)
        heard.openUnsafe()
      })
    ),
    Effect.forkScoped
  )
  const waitWhile = (busy: () => boolean) =>
    Effect.whileLoop({ while: busy, body: () => Effect.suspend(() => (heard.closeUnsafe(), heard.await)), step: () => undefined })
  // Who subscribes late has missed what was sent before: asked until somebody answers. Late answers to it count for nothing.
  open.add(-1)
  yield* Effect.raceFirst(waitWhile(() => open.size > 0), Effect.forever(Effect.andThen(publish("orders", { id: -1, ...orderOf(0) }), Effect.sleep(20))))
  return (count: number) =>
    Effect.gen(function*() {
      for (let id = 0; id < count; id++) {
        if (open.size >= window) yield* waitWhile(() => open.size >= window)
        open.add(id)
        yield* publish("orders", { id, ...orderOf(id) })
      }
      yield* waitWhile(() => open.size > 0)
    })
})

/** Serves for ever. */
export const serveOurs = (pattern: Pattern, program: Program, endpoint: string, back: string): Effect.Effect<unknown, unknown> =>
  // The broker is in its worker's process: its time counts among the server's. What it tells would be read as a result.
  pattern === "majordomo" ? Effect.scoped(Effect.andThen(Broker.open({ endpoint }), work(pattern, program, endpoint, back))).pipe(Effect.provide(Logger.layer([]))) : work(pattern, program, endpoint, back)

const work = (pattern: Pattern, program: Program, endpoint: string, back: string): Effect.Effect<unknown, unknown> =>
  program === "charges"
    ? Effect.flatMap(ChargeServer, (server) => server.serve((request) => Effect.succeed(paid(request)))).pipe(Effect.provide(layers[pattern][1]({ endpoint })))
    : pattern === "pub-sub"
    ? servePublished(endpoint, back)
    : services[pattern].serve({ ...order, endpoint, service }, (request) => Effect.succeed(replyTo(request)))

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
export const connectOurs = Effect.fnUntraced(function*(pattern: Pattern, program: Program, endpoint: string, back: string): Effect.fn.Return<(count: number) => Effect.Effect<unknown, unknown>, unknown, Scope.Scope> {
  const concurrency = windowOf(pattern)
  const options = { endpoint, window, sockets: 1 }
  if (program === "charges") {
    const client = Context.get(yield* Layer.build(layers[pattern][0](options)), ChargeClient)
    return (count) => inLoops(count, concurrency, (index) => client.submit(chargeOf(index)))
  }
  if (pattern === "pub-sub") return yield* connectPublished(endpoint, back)
  const { request, requestAll } = yield* services[pattern].client({ ...order, ...options, service })
  if (program === "batch") return inBatches(requestAll)
  return (count) => inLoops(count, concurrency, (index) => request(orderOf(index)))
})
