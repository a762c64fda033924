import { ChargeGateway, ChargeRequest } from "@purser/core"
import { StripeClient, StripeGateway } from "@purser/stripe"
import { StripeSim } from "@purser/stripe-sim"
import { Console, Effect, Layer, Redacted, Schema } from "effect"

// A simulator stands in for Stripe. In production, `StripeGateway.layerPaymentIntents` alone is all there is to
// provide: it reads PURSER_STRIPE_KEY and the other variables.
const Client = Layer.unwrap(Effect.gen(function*() {
  const { url } = yield* StripeSim
  return StripeClient.layer({ key: Redacted.make("rk_test_example"), url })
}))
const Gateway = StripeGateway.layerPaymentIntentsWith().pipe(Layer.provide(Client), Layer.provideMerge(StripeSim.layer()))

const program = Effect.gen(function*() {
  const gateway = yield* ChargeGateway
  const request = yield* Schema.decodeEffect(ChargeRequest)({
    namespace: "zmq-billing",
    customerId: "cust_123",
    billingPeriod: "2026-07",
    amountMinor: 1999,
    currency: "usd",
    stripeCustomerId: "cus_123"
  })
  const order = { chargeKey: request.chargeKey, request, generation: 1 }

  const intent = yield* gateway.create(order, "")
  const paymentMethod = yield* gateway.defaultPaymentMethod(order)
  yield* Console.log(`created:   ${intent.status}`)

  const paid = yield* gateway.confirm(order, { id: intent.id, attempt: 1, paymentMethod, keySuffix: "" })
  yield* Console.log(`confirmed: ${paid.status}, ${paid.amountReceivedMinor} ${paid.currency}`)

  // A worker that woke up late tries again: the object cannot be paid twice.
  const again = yield* gateway.confirm(order, { id: intent.id, attempt: 2, paymentMethod, keySuffix: "" })
  yield* Console.log(`again:     ${again.status}`)

  const sim = yield* StripeSim
  yield* Console.log(`payments:  ${yield* sim.payments("cust_123", "2026-07")}`)
})

await Effect.runPromise(program.pipe(Effect.provide(Gateway)))
