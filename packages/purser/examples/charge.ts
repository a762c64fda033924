import { Currency, defaultNamespace, parsePeriod, SpendCap } from "@purser/core"
import { Purser, Stores } from "@purser/purser"
import { StripeSim } from "@purser/stripe-sim"
import { ConfigProvider, Effect, Layer, ManagedRuntime } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

// A simulator stands in for Stripe, a folder for PostgreSQL. In production these are environment variables.
const stripe = ManagedRuntime.make(StripeSim.layer())
const { payments, url } = await stripe.runPromise(StripeSim)
const config = {
  PURSER_STRIPE_URL: url,
  PURSER_STRIPE_KEY: "rk_test_example",
  PURSER_DATA_DIR: mkdtempSync(join(tmpdir(), "purser-example-"))
}

// Nothing is charged without a cap. A person opens it: here, or with `purser cap open 2025-07 --expected-total 100.00 …`.
const openCap = Effect.gen(function*() {
  const cap = yield* SpendCap
  const billingPeriod = yield* Effect.fromResult(parsePeriod("2025-07"))
  yield* cap.open({ namespace: defaultNamespace, billingPeriod, currency: Currency.make("usd"), expectedMinor: 10_000n, headroomPercent: 110 })
})
const Store = Stores.layerConfig.pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(config))))
await Effect.runPromise(openCap.pipe(Effect.provide(Store)))

// From here on it is plain Node: one object, promises, typed rejections.
const purser = await Purser.make(config)
const invoice = { customerId: "cust_123", billingPeriod: "2025-07", amountMinor: 1999, currency: "usd", stripeCustomerId: "cus_123" }
for (const time of ["first ", "second"]) {
  const outcome = await purser.charge(invoice)
  console.log(`${time}: ${outcome._tag}, already settled: ${outcome.alreadySettled}`)
}
console.log(`payments at Stripe: ${await stripe.runPromise(payments("cust_123", "2025-07"))}`)

await purser.close()
await stripe.dispose()
rmSync(config.PURSER_DATA_DIR, { recursive: true })
