import { Purser } from "@purser/purser"

// PURSER_STRIPE_KEY and friends from the environment; one that is missing is named in a sentence.
const purser = await Purser.make().catch((error: Error) => {
  console.error(error.message)
  process.exit(1)
})

// Nothing is charged without a cap: the period's expected total, times 1.10.
await purser.openCap({ billingPeriod: "2026-07", currency: "usd", expectedMinor: 1999 })

const result = await purser.results.charge({
  customerId: "cust_123", // customer, period and item are the charge: asked again, it is the same one
  billingPeriod: "2026-07",
  item: "subscription",
  amountMinor: 1999, // 19.99 usd
  currency: "usd",
  stripeCustomerId: "cus_123"
})

if (result._tag === "Failure") {
  // Whether money may have moved, and whether asking again may help. To ask again is always safe.
  const { error } = result
  console.log(error.message, "outcome" in error ? error.outcome : "not_charged", error.isRetryable ? "try again" : "")
} else {
  // Succeeded, or what else became of it: Declined, RequiresAction, Processing, Rejected, Canceled.
  const outcome = result.value
  console.log(outcome._tag, outcome.alreadySettled ? "(charged before)" : "")
}

await purser.close()
