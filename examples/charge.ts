import { Purser } from "@purser/purser"

const purser = await Purser.make() // PURSER_STRIPE_KEY and friends from the environment
await purser.openCap({ billingPeriod: "2026-07", currency: "usd", expectedMinor: 1999 })

const outcome = await purser.charge({
  customerId: "cust_123",
  billingPeriod: "2026-07",
  amountMinor: 1999, // 19.99 usd
  currency: "usd",
  stripeCustomerId: "cus_123"
})
console.log(outcome._tag, outcome.alreadySettled ? "(charged before)" : "")

await purser.close()
