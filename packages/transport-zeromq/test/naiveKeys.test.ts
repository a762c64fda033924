/** Keys that a naive sender on PUB/SUB or PAIR would make: each charges twice what ours charges once. */
import { assert, describe, it } from "@effect/vitest"
import { ChargeClient, type ChargeRequest } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { MockGateway } from "@purser/testkit/MockGateway"
import { TestPipeline } from "@purser/testkit/TestPipeline"
import { ZmqTransport } from "@purser/transport-zeromq"
import { Context, Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import * as zmq from "zeromq"
import { bare, freeAddress, serveOn } from "./support.ts"

/** A processor that honours idempotency keys, and the engine beside it. */
const both = Effect.map(Layer.build(TestPipeline.layer), (context) => {
  const engine = Context.get(context, ChargeClient)
  const books = Context.get(context, MockGateway)
  const naive = new Map<string, string>()
  return {
    /** The naive worker believes the sender's key. */
    charge: (request: ChargeRequest) => {
      naive.set(request.senderKey!, naive.get(request.senderKey!) ?? request.customerId)
      return Effect.catchTag(engine.submit(request), "TransportError", (error) => Effect.die(error))
    },
    naivePayments: (customer: string) => [...naive.values()].filter((paidBy) => paidBy === customer).length,
    ourPayments: (customer: string) => books.paymentsOf(customer, "2026-07")
  }
})

const plain = (customer_id: string, idempotency_key: string) =>
  JSON.stringify({ customer_id, billing_period: "2026-07", amount_cents: chargeFor("x", "2026-07").amountMinor, stripe_customer_id: "cus_1", idempotency_key })

describe("a naive sender's key", () => {
  it.live("pub-sub: the place in the publication, and in the replay after a reconnect", () =>
    Effect.gen(function*() {
      const { charge, naivePayments, ourPayments } = yield* both
      const [endpoint, ackEndpoint] = [yield* freeAddress, yield* freeAddress]
      yield* serveOn(ZmqTransport.layerPubSubServer({ endpoint, ackEndpoint }), charge)
      const ack = yield* bare(() => new zmq.Pull({ linger: 0 }))
      yield* Effect.promise(() => ack.bind(ackEndpoint))
      const connected = Effect.tap(bare(() => new zmq.XPublisher({ linger: 0 })), (pub) => {
        pub.connect(endpoint)
        return Effect.promise(() => pub.receive())
      })
      const send = (pub: zmq.XPublisher, key: string) => Effect.promise(() => pub.send(["charges", plain("a", key)]).then(() => ack.receive()))
      yield* Effect.scoped(Effect.flatMap(connected, (pub) => send(pub, "live-17")))
      // The subscriber came back, and the publisher replays what it may have missed, counted anew.
      yield* Effect.scoped(Effect.flatMap(connected, (pub) => send(pub, "replay-1")))
      assert.deepStrictEqual([naivePayments("a"), yield* ourPayments("a")], [2, 1])
    }), 60_000)

  it.live("pair: the address of the other end, which is another one after a restart", () =>
    Effect.gen(function*() {
      const { charge, naivePayments, ourPayments } = yield* both
      for (const endpoint of [`inproc://${randomUUID()}`, `inproc://${randomUUID()}`]) {
        yield* Effect.scoped(Effect.gen(function*() {
          yield* serveOn(ZmqTransport.layerPairServer({ endpoint }), charge)
          const pair = yield* bare(() => new zmq.Pair({ linger: 0 }))
          pair.connect(endpoint)
          yield* Effect.promise(() => pair.send(plain("a", `${endpoint}:2026-07`)).then(() => pair.receive()))
        }))
      }
      assert.deepStrictEqual([naivePayments("a"), yield* ourPayments("a")], [2, 1])
    }), 60_000)
})
