// A PaymentIntent confirmed twice: the answer of the first confirm is lost on the wire, the money moved once.
import { StripeSim } from "@purser/stripe-sim"
import { Console, Effect } from "effect"
import { Stripe } from "stripe"

const program = Effect.gen(function*() {
  const sim = yield* StripeSim
  const stripe = new Stripe("sk_test_sim", {
    host: sim.host,
    port: sim.port,
    protocol: "http",
    telemetry: false,
    maxNetworkRetries: 0
  })
  yield* sim.faults.add({
    match: { method: "POST", path: "/v1/payment_intents/*/confirm" },
    action: { kind: "serverError", effect: "done", stored: false }
  })

  const intent = yield* Effect.promise(() =>
    stripe.paymentIntents.create({
      amount: 1999,
      currency: "usd",
      customer: "cus_123",
      payment_method: "pm_card_visa",
      allowed_payment_method_types: ["card"],
      metadata: { customer_id: "acme", billing_period: "2026-07" }
    })
  )
  const confirm = Effect.promise(() =>
    stripe.paymentIntents.confirm(intent.id, { off_session: true }).then(
      () => "succeeded",
      (error: Stripe.errors.StripeError) => `${error.statusCode} ${error.code ?? error.rawType}`
    )
  )
  yield* Console.log(yield* confirm) // 500 api_error, although the money moved
  yield* Console.log(yield* confirm) // 400 payment_intent_unexpected_state: it has succeeded
  yield* Console.log(yield* sim.books)
})

await program.pipe(Effect.provide(StripeSim.layer()), Effect.runPromise)
