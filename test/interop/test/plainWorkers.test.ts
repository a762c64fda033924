/** Our clients with a fleet's own workers, which read and write the plain form alone. */
import { assert, describe, it } from "@effect/vitest"
import { ChargeClient } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { Broker, ZmqTransport } from "@purser/transport-zeromq"
import { Context, Effect, Layer, Schedule } from "effect"
import { plainWorker } from "../src/PlainWorker.ts"
import { python } from "../src/PyzmqPeer.ts"
import { freeAddress } from "../src/sockets.ts"

const clients = {
  "req-rep": ZmqTransport.layerReqRepClient,
  "router-dealer": ZmqTransport.layerRouterDealerClient,
  "push-pull": ZmqTransport.layerPushPullClient,
  majordomo: ZmqTransport.layerMajordomoClient
}
const spoken = ["req-rep", "router-dealer", "push-pull", "majordomo"] as const

for (const pattern of spoken) {
  describe(`a plain worker on ${pattern}`, () => {
    for (const withPython of [false, true]) {
      it.live(`${withPython && python !== undefined ? "written with pyzmq" : "of bare sockets"}${withPython ? ", as a fleet has it" : ""} answers each request of ours with its own charge`, () =>
        Effect.gen(function*() {
          const addresses = { endpoint: yield* freeAddress, ackEndpoint: yield* freeAddress }
          if (pattern === "majordomo") yield* Broker.open({ endpoint: addresses.endpoint, drainTimeout: 0, heartbeat: "10 seconds" })
          const requests = ["a", "Ünlü", "c"].map((customer, index) => chargeFor(customer, "Q3-2026", { amountMinor: 1000 + index, ...(index === 2 ? { item: "seat" } : {}) }))
          const seen = yield* plainWorker(pattern, addresses, requests.length, withPython)
          const context = yield* Layer.build(clients[pattern]({
            endpoint: addresses.endpoint,
            returnEndpoint: addresses.ackEndpoint,
            form: "plain",
            requestTimeout: "30 seconds",
            retry: Schedule.recurs(0)
          }))
          const { submit } = Context.get(context, ChargeClient)
          const outcomes = yield* Effect.forEach(requests, submit, { concurrency: "unbounded" })
          assert.deepStrictEqual(
            outcomes.map((outcome) => outcome._tag === "Succeeded" && [outcome.chargeKey, outcome.chargeId, outcome.amountReceivedMinor]),
            requests.map((request) => [request.chargeKey, `ch_${request.customerId}`, request.amountMinor])
          )
          const bodies = yield* seen
          assert.sameDeepMembers(
            bodies.map(({ amount_cents, billing_period, customer_id, idempotency_key, item }) => [customer_id, billing_period, amount_cents, item ?? null, idempotency_key]),
            requests.map((request) => [request.customerId, request.billingPeriod, request.amountMinor, request.item ?? null, request.chargeKey])
          )
        }), 60_000)
    }
  })
}
