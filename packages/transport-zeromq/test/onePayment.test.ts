import { assert, describe, it } from "@effect/vitest"
import { ChargeClient, type ChargeRequest, type ChargeServer } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { MockGateway } from "@purser/testkit/MockGateway"
import { TestPipeline } from "@purser/testkit/TestPipeline"
import { ZmqTransport } from "@purser/transport-zeromq"
import { Context, Effect, Layer, Schedule } from "effect"
import * as zmq from "zeromq"
import { bare, freeAddress, serveOn } from "./support.ts"

/** A processor that honours idempotency keys: a key that it knows gets its first payment again. */
const processor = () => {
  const payments = new Map<string, string>()
  return {
    charge: (key: string, customer: string) => void payments.set(key, payments.get(key) ?? customer),
    paymentsOf: (customer: string) => [...payments.values()].filter((paidBy) => paidBy === customer).length
  }
}

/** The engine behind its memory transport, for a server to hand its requests to. */
const pipeline = Effect.map(Layer.build(TestPipeline.layer), (context) => {
  const engine = Context.get(context, ChargeClient)
  const books = Context.get(context, MockGateway)
  return {
    charge: (request: ChargeRequest) => Effect.catchTag(engine.submit(request), "TransportError", (error) => Effect.die(error)),
    payments: (customer: string) => books.paymentsOf(customer, "2026-07")
  }
})

interface Sides {
  readonly client: Layer.Layer<ChargeClient, unknown>
  readonly server: Layer.Layer<ChargeServer, unknown>
}

/** Every request is paid for, and its first answer is never given: each is delivered again. */
const redelivered = Effect.fnUntraced(function*({ client, server }: Sides) {
  const { charge, payments } = yield* pipeline
  const deliveries = new Map<string, number>()
  yield* serveOn(server, (request) =>
    Effect.gen(function*() {
      const delivery = (deliveries.get(request.customerId) ?? 0) + 1
      deliveries.set(request.customerId, delivery)
      const outcome = yield* charge(request)
      return delivery === 1 ? yield* Effect.never : outcome
    }))
  const { submit } = Context.get(yield* Layer.build(client), ChargeClient)
  const customers = Array.from({ length: 50 }, (_, index) => `c_${index}`)
  const outcomes = yield* Effect.forEach(customers, (customer) => submit(chargeFor(customer, "2026-07")), { concurrency: "unbounded" })
  for (const [index, customer] of customers.entries()) {
    assert.deepInclude({ ...outcomes[index] }, { _tag: "Succeeded", alreadySettled: true })
    assert.isAtLeast(deliveries.get(customer) ?? 0, 2)
    assert.strictEqual(yield* payments(customer), 1)
  }
})

const hurried = { requestTimeout: "150 millis", retry: Schedule.spaced("10 millis"), drainTimeout: "10 millis" } as const

describe("one payment, whatever is delivered again", () => {
  it.live("router-dealer", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      yield* redelivered({
        client: ZmqTransport.layerRouterDealerClient({ ...hurried, endpoint }),
        server: ZmqTransport.layerRouterDealerServer({ ...hurried, endpoint })
      })
    }), 60_000)

  it.live("push-pull", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      yield* redelivered({
        client: ZmqTransport.layerPushPullClient({ ...hurried, endpoint }),
        server: ZmqTransport.layerPushPullServer({ ...hurried, endpoint })
      })
    }), 60_000)
})

const plain = (customer_id: string, seq: number, idempotency_key?: string) =>
  JSON.stringify({ customer_id, billing_period: "2026-07", amount_cents: 1000, stripe_customer_id: "cus_1", seq, idempotency_key })

describe("the naive sender beside it", () => {
  it.live("push-pull: a key from the acknowledgement counter charges twice what ours charges once", () =>
    Effect.gen(function*() {
      const { charge, payments } = yield* pipeline
      const naive = processor()
      const [endpoint, ackEndpoint] = [yield* freeAddress, yield* freeAddress]
      // One handler stands for both workers: the naive one believes the sender's key.
      yield* serveOn(ZmqTransport.layerPushPullServer({ endpoint, ackEndpoint }), (request) =>
        Effect.andThen(Effect.sync(() => naive.charge(request.senderKey!, request.customerId)), charge(request)))
      const ack = yield* bare(() => new zmq.Pull({ linger: 0 }))
      yield* Effect.promise(() => ack.bind(ackEndpoint))
      const push = yield* bare(() => new zmq.Push({ linger: 0 }))
      push.connect(endpoint)
      let acknowledged = 0
      const send = (customer: string) =>
        Effect.promise(() => push.send(plain(customer, acknowledged, `ack-${acknowledged}`)).then(() => ack.receive()))
      // The acknowledgement of "a" is lost on the sender's side; that of "b" moves its counter, and "a" is sent again.
      yield* send("a")
      acknowledged = 1
      yield* send("b")
      acknowledged = 2
      yield* send("a")
      assert.deepStrictEqual([naive.paymentsOf("a"), yield* payments("a")], [2, 1])
      assert.deepStrictEqual([naive.paymentsOf("b"), yield* payments("b")], [1, 1])
    }), 60_000)

  it.live("router-dealer: a key from the routing id charges twice what ours charges once", () =>
    Effect.gen(function*() {
      const { charge, payments } = yield* pipeline
      const naive = processor()
      const [address, ours] = [yield* freeAddress, yield* freeAddress]
      yield* serveOn(ZmqTransport.layerRouterDealerServer({ endpoint: ours }), charge)
      // The naive worker takes the routing frame for the customer's identity.
      const router = yield* bare(() => new zmq.Router({ linger: 0 }))
      yield* Effect.promise(() => router.bind(address))
      const serveNaively = Effect.promise(() => router.receive()).pipe(
        Effect.tap(([peer, body]) => Effect.sync(() => naive.charge(`${String(peer)}:2026-07`, JSON.parse(String(body)).customer_id))),
        Effect.flatMap(([peer]) => Effect.promise(() => router.send([peer!, "ok"])))
      )
      // The answer is not heard, the socket is given up, and the request is sent again by a new one.
      for (const life of ["dealer-1", "dealer-2"]) {
        yield* Effect.scoped(Effect.gen(function*() {
          const dealers = [address, ours].map((to) => ({ to, socket: new zmq.Dealer({ linger: 0, routingId: life }) }))
          for (const { socket, to } of dealers) {
            yield* bare(() => socket)
            socket.connect(to)
            yield* Effect.promise(() => socket.send(plain("a", 1)))
          }
          yield* serveNaively
          for (const { socket } of dealers) yield* Effect.promise(() => socket.receive())
        }))
      }
      assert.deepStrictEqual([naive.paymentsOf("a"), yield* payments("a")], [2, 1])
    }), 60_000)
})
