import { AmountMinor, ChargeRequest, Currency, defaultNamespace, Ledger, Money, parsePeriod } from "@purser/core"
import { Console, Effect, Schema } from "effect"

const program = Effect.gen(function*() {
  // The period is one whatever its spelling, and the amount never passes through a float.
  const billingPeriod = yield* Effect.fromResult(parsePeriod("2026-Q3"))
  const currency = Currency.make("eur")
  const money = yield* Effect.fromResult(Money.fromDecimal("19.99", currency))

  const request = new ChargeRequest({
    namespace: defaultNamespace,
    customerId: "cust_123",
    billingPeriod,
    amountMinor: money.amountMinor,
    currency,
    stripeCustomerId: "cus_123"
  })
  yield* Console.log(`${billingPeriod}: ${money.amountMinor} minor units, key ${request.chargeKey}`)

  // Two workers meet on one charge; then somebody asks for other terms.
  const ledger = yield* Ledger
  yield* Console.log((yield* ledger.claim(request, "worker 1"))._tag)
  yield* Console.log((yield* ledger.claim(request, "worker 2"))._tag)
  const dearer = new ChargeRequest({ ...request, amountMinor: yield* Schema.decodeEffect(AmountMinor)(2999) })
  yield* Console.log((yield* ledger.claim(dearer, "worker 3"))._tag)
})

await Effect.runPromise(program.pipe(Effect.provide(Ledger.layerMemory)))
