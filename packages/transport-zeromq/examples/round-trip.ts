import { ChargeClient, ChargeRequest, ChargeServer, Succeeded } from "@purser/core"
import { ZmqTransport } from "@purser/transport-zeromq"
import { Console, Effect, Fiber, Schema } from "effect"

const request = Schema.decodeUnknownSync(ChargeRequest)({
  namespace: "zmq-billing",
  customerId: "cust_123",
  billingPeriod: "Q3-2026",
  amountMinor: 4900,
  currency: "usd",
  stripeCustomerId: "cus_123"
})

// A handler stands in for the engine here: it answers each request as paid.
const program = Effect.gen(function*() {
  const server = yield* ChargeServer
  const serving = yield* Effect.forkChild(server.serve(({ amountMinor, chargeKey }) =>
    Effect.succeed(
      new Succeeded({ chargeKey, alreadySettled: false, paymentIntentId: "pi_1", chargeId: "ch_1", amountReceivedMinor: amountMinor })
    )
  ))
  const outcome = yield* (yield* ChargeClient).submit(request)
  yield* Console.log(outcome._tag, outcome.chargeKey)
  yield* Fiber.interrupt(serving)
})

await Effect.runPromise(Effect.provide(program, ZmqTransport.layerReqRepLoopback()))
