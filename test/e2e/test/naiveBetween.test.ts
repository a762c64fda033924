/**
 * Naive senders and workers on both sides of a forwarder and of a broker, beside ours: what they put into their keys changes
 * when a message is handed on again, and the simulator's books have two payments where ours has one.
 */
import { assert, describe, it } from "@effect/vitest"
import { type ChargeRequest, ChargeServer } from "@purser/core"
import { ChargePipeline } from "@purser/engine"
import * as TestDatabase from "@purser/postgres/TestDatabase"
import { StripeSim } from "@purser/stripe-sim"
import { chargeFor } from "@purser/testkit"
import { Broker, Forwarder, ZmqTransport } from "@purser/transport-zeromq"
import { Context, Deferred, Effect, Exit, Latch, Layer, Schedule, Scope } from "effect"
import { Stripe } from "stripe"
import * as zmq from "zeromq"
import { freePort } from "../src/Proxy.ts"
import { openCap, payments, world } from "../src/World.ts"

const address = Effect.map(freePort, (port) => `tcp://127.0.0.1:${port}`)
const quick = { socket: { reconnectMs: 20, reconnectMaxMs: 50 } } as const
const bare = <S extends zmq.Socket>(make: () => S) => Effect.acquireRelease(Effect.sync(make), (socket) => Effect.sync(() => socket.close()))
const plain = (customer_id: string, idempotency_key?: string) =>
  JSON.stringify({ customer_id, billing_period: "2026-07", item: "base", amount_cents: 1000, stripe_customer_id: `cus_${customer_id}`, payment_method: "pm_1", idempotency_key })

/** The naive payment: Stripe's key is what somebody on the way made up. The customer has another name, so that the books keep both apart. */
const naivePay = Effect.fnUntraced(function*(customer: string, key: string) {
  const url = new URL((yield* StripeSim).url)
  const stripe = new Stripe("sk_test_naive", { host: url.hostname, port: url.port, protocol: "http", telemetry: false, maxNetworkRetries: 0 })
  const metadata = { customer_id: customer, billing_period: "2026-07", item: "base" }
  yield* Effect.promise(() => stripe.charges.create({ amount: 1000, currency: "usd", customer: `cus_${customer}`, metadata }, { idempotencyKey: key }))
})

const requestOf = (customer: string) => chargeFor(customer, "2026-07", { item: "base" })
const charge = (request: ChargeRequest) => Effect.flatMap(ChargePipeline, (pipeline) => pipeline.charge(request))

/** Serves in the present context until the returned scope closes. */
const serve = <E extends Error, R>(layer: Layer.Layer<ChargeServer, unknown>, handler: (request: ChargeRequest) => Effect.Effect<Effect.Success<ReturnType<typeof charge>>, E, R>) =>
  Effect.gen(function*() {
    const context = yield* Effect.context<R>()
    const scope = yield* Scope.fork(yield* Effect.scope)
    const server = Context.get(yield* Layer.buildWithScope(layer, scope), ChargeServer)
    yield* Effect.forkIn(server.serve((request) => Effect.orDie(Effect.provide(handler(request), context))), scope)
    return scope
  })

const onWorld = <E>(test: Effect.Effect<void, E, Scope.Scope | Layer.Success<ReturnType<typeof world>>>) =>
  Effect.provide(test, world(TestDatabase.layers[0]![1]))

describe("the naive ones beside ours", () => {
  it.live("forwarder: a key from the time at which the retry timer fired charges twice what ours charges once", () =>
    onWorld(Effect.gen(function*() {
      yield* openCap(requestOf("a"))
      const [frontend, backend] = [yield* address, yield* address]
      const device = Effect.gen(function*() {
        const scope = yield* Scope.make()
        yield* Scope.provide(Forwarder.open({ device: "queue", frontend, backend, ...quick }), scope)
        return Scope.close(scope, Exit.void)
      })
      const [begun, gate] = [yield* Latch.make(false), yield* Latch.make(false)]
      // One handler stands for both workers: the naive one believes the sender's key. Its first answer waits until the forwarder is gone.
      yield* serve(ZmqTransport.layerRouterDealerServer({ endpoint: `>${backend}`, ...quick }), (request) =>
        Effect.andThen(Effect.andThen(naivePay("naive", request.senderKey!), charge(request)), (outcome) => Effect.as(Effect.andThen(begun.open, gate.await), outcome)))
      const sender = yield* bare(() => new zmq.Dealer({ linger: 0, reconnectInterval: 20 }))
      sender.connect(frontend)
      const firedAt = () => `retry-at-${performance.now()}`

      const stop = yield* device
      yield* Effect.promise(() => sender.send(plain("a", firedAt())))
      yield* begun.await
      yield* stop
      yield* gate.open
      const stopAgain = yield* device
      // The sender's timer fires: the answer was in the forwarder.
      yield* Effect.promise(() => sender.send(plain("a", firedAt())))
      const [answer] = yield* Effect.promise(() => sender.receive())
      assert.strictEqual(JSON.parse(String(answer)).status, "already_processed")
      yield* stopAgain
      assert.deepStrictEqual([yield* payments(requestOf("naive")), yield* payments(requestOf("a"))], [2, 1])
    })), 120_000)

  it.live("Majordomo: a key from the worker's id and the broker's attempt charges twice what ours charges once", () =>
    onWorld(Effect.gen(function*() {
      yield* openCap(requestOf("a"))
      const endpoint = yield* address
      const broker = yield* Broker.open({ endpoint, heartbeat: "200 millis", drainTimeout: 0, ...quick })
      const workers = (count: number) => Effect.repeat(broker.figures, { until: (figures) => figures.workers === count, schedule: Schedule.spaced("10 millis") })
      const client = yield* bare(() => new zmq.Dealer({ linger: 0 }))
      client.connect(endpoint)

      /** A naive worker: pays under the names that it and the broker have, and stands still before it answers, unless told to. */
      const naiveWorker = Effect.fnUntraced(function*(name: string, answers: boolean) {
        const worker = yield* bare(() => new zmq.Dealer({ linger: 0, routingId: name }))
        worker.connect(endpoint)
        yield* Effect.promise(() => worker.send(["MDPW02", "\x01", "naive"]))
        const [, , token] = yield* Effect.repeat(Effect.promise(() => worker.receive()), { until: (frames) => frames[1]![0] === 2 })
        yield* naivePay("naive", `${name}:${String(token)}`)
        if (answers) yield* Effect.promise(() => worker.send(["MDPW02", "\x04", token!, "", "ok"]))
      })
      yield* Effect.promise(() => client.send(["MDPC02", "\x01", "naive", plain("naive")]))
      yield* naiveWorker("worker-1", false)
      yield* workers(0)
      yield* naiveWorker("worker-2", true)
      yield* Effect.promise(() => client.receive())

      // Ours in the same case: the first worker charges, misses its heartbeats and never answers.
      const charged = yield* Deferred.make<void>()
      yield* Effect.promise(() => client.send(["MDPC02", "\x01", "charge", plain("a")]))
      const frozen = yield* serve(ZmqTransport.layerMajordomoServer({ endpoint, heartbeat: "1 hour", drainTimeout: 0, ...quick }), (request) =>
        Effect.tap(charge(request), () => Effect.andThen(Deferred.succeed(charged, undefined), Effect.never)))
      yield* Deferred.await(charged)
      yield* serve(ZmqTransport.layerMajordomoServer({ endpoint, heartbeat: "200 millis", ...quick }), charge)
      const [, command, , answer] = yield* Effect.promise(() => client.receive())
      assert.deepStrictEqual([command![0], JSON.parse(String(answer)).status], [3, "already_processed"])
      yield* Scope.close(frozen, Exit.void)
      assert.deepStrictEqual([yield* payments(requestOf("naive")), yield* payments(requestOf("a"))], [2, 1])
    })), 120_000)
})
