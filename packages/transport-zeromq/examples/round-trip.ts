import { ChargeClient, ChargeRequest, ChargeServer, parsePeriod, Succeeded } from "@purser/core"
import { ZmqTransport } from "@purser/transport-zeromq"
import { Console, Effect, Fiber } from "effect"

// A handler stands in for the engine here: it answers each request as paid.
const program = Effect.gen(function*() {
  const server = yield* ChargeServer
  const serving = yield* Effect.forkChild(server.serve((request) =>
    Effect.succeed(
      new Succeeded({
        chargeKey: request.chargeKey,
        alreadySettled: false,
        paymentIntentId: "pi_1",
        chargeId: "ch_1",
        amountReceivedMinor: request.amountMinor
      })
    )
  ))
  const client = yield* ChargeClient
  const outcome = yield* client.submit(
    new ChargeRequest({
      namespace: "zmq-billing",
      customerId: "cust_123",
      billingPeriod: yield* Effect.fromResult(parsePeriod("2026-Q3", { labels: "calendar" })),
      amountMinor: 4900,
      currency: "usd",
      stripeCustomerId: "cus_123"
    })
  )
  yield* Console.log(outcome._tag, outcome.chargeKey)
  yield* Fiber.interrupt(serving)
})

await Effect.runPromise(Effect.provide(program, ZmqTransport.layerReqRepLoopback()))
