import { ChargeRequest, EventLog, Ledger } from "@purser/core"
import { ZmqEventFeed } from "@purser/transport-zeromq"
import { Console, Effect, Layer, Schema, Stream } from "effect"

const request = Schema.decodeUnknownSync(ChargeRequest)({
  namespace: "zmq-billing",
  customerId: "cust_123",
  billingPeriod: "Q3-2026",
  amountMinor: 4900,
  currency: "usd",
  stripeCustomerId: "cus_123"
})
const addresses = { endpoint: "inproc://events", replayEndpoint: "inproc://history" }

// The memory ledger stands in for PostgreSQL here: PgLedger and PgEventLog are the live ones.
const program = Effect.gen(function*() {
  const ledger = yield* Ledger
  yield* ledger.claim(request, "worker-1")
  yield* ZmqEventFeed.publish(addresses)
  yield* ZmqEventFeed.follow({ _tag: "Snapshot" }, addresses).pipe(
    Stream.tap((notice) => notice._tag === "Synced" ? ledger.claim(new ChargeRequest({ ...request, item: "seat" }), "worker-2") : Effect.void),
    Stream.filter((notice) => notice._tag === "State" || notice._tag === "Event"),
    Stream.take(2),
    Stream.runForEach(({ _tag, event }) => Console.log(_tag, event.sequence, event.customerId, event.item ?? "-", event.to))
  )
})

const Stores = EventLog.layerMemory.pipe(Layer.provideMerge(Ledger.layerMemory))
await Effect.runPromise(Effect.scoped(program).pipe(Effect.provide(Stores)))
