import { ChargeClient, ChargeGateway, ChargeRequest, Ledger, SpendCap, Transport } from "@purser/core"
import { ChargeWorker } from "@purser/engine"
import { Console, Effect, Layer, Schema } from "effect"

// A worker, whole. Each of these layers has a live twin: ZmqTransport, PgLedger, PgSpendCap, StripeGateway.
const Edges = Layer.mergeAll(Transport.layerMemory, Ledger.layerMemory, SpendCap.layerMemory, ChargeGateway.layerMemory)
const App = ChargeWorker.layer.pipe(Layer.provideMerge(Edges))

const program = Effect.gen(function*() {
  const client = yield* ChargeClient
  const cap = yield* SpendCap
  const request = yield* Schema.decodeEffect(ChargeRequest)({
    namespace: "zmq-billing",
    customerId: "cust_123",
    billingPeriod: "2025-07",
    amountMinor: 1999,
    currency: "usd",
    stripeCustomerId: "cus_123"
  })

  const refused = yield* client.submit(new ChargeRequest({ ...request, item: "before the cap" }))
  yield* Console.log(refused._tag, refused._tag === "Rejected" ? refused.code : "")

  yield* cap.open({ ...request, expectedMinor: 10_000n, headroomPercent: 110 })
  const first = yield* client.submit(request)
  const again = yield* client.submit(request)
  yield* Console.log(first._tag, "already settled:", first.alreadySettled)
  yield* Console.log(again._tag, "already settled:", again.alreadySettled)

  const [report] = yield* cap.report()
  yield* Console.log(`cap ${report?.capMinor}, taken ${report?.reservedMinor}`)
})

await Effect.runPromise(program.pipe(Effect.provide(App)))
