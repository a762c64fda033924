import { Purser } from "@purser/purser"
import { StripeSim } from "@purser/stripe-sim"
import { ManagedRuntime } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

// A simulator stands in for Stripe, a folder for PostgreSQL. In production these settings are environment variables.
const stripe = ManagedRuntime.make(StripeSim.layer())
const { payments, url } = await stripe.runPromise(StripeSim)
const folder = mkdtempSync(join(tmpdir(), "purser-example-"))
const purser = await Purser.make({ PURSER_STRIPE_URL: url, PURSER_STRIPE_KEY: "rk_test_example", PURSER_DATA_DIR: folder })

const invoice = { customerId: "cust_123", billingPeriod: "2025-07", amountMinor: 1999, currency: "usd", stripeCustomerId: "cus_123" }

// Nothing is charged without a cap: say what the period's charges should add up to.
await purser.openCap({ billingPeriod: "2025-07", currency: "usd", expectedMinor: 10_000 })
for (const time of ["first ", "second"]) {
  const outcome = await purser.charge(invoice)
  console.log(`${time}: ${outcome._tag}, already settled: ${outcome.alreadySettled}`)
}
console.log(`payments at Stripe: ${await stripe.runPromise(payments("cust_123", "2025-07"))}`)

await purser.close()
await stripe.dispose()
rmSync(folder, { recursive: true })
