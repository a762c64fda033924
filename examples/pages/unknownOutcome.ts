import { type ChargeInput, Purser } from "@purser/purser"
import { setTimeout } from "node:timers/promises"

// One try of each step, so that one lost answer is enough.
const purser = await Purser.make({ PURSER_GATEWAY_ATTEMPTS: "1", PURSER_HAND_BACK: "100 millis", PURSER_SWEEP_INTERVAL: "1 hour" })
const fault = { match: { method: "POST", path: "/v1/payment_intents/*/confirm" }, action: { kind: "reset", at: "after" } }
await fetch(`${process.env["PURSER_STRIPE_URL"]}/_sim/faults`, { method: "POST", body: JSON.stringify(fault) })
await purser.openCap({ billingPeriod: "2026-07", currency: "usd", expectedMinor: 100_000 })

// #region
/** Asks until there is a fact. To ask again is always safe: it is the same charge, whoever asks, and however often. */
const settled = async (bill: ChargeInput) => {
  for (;;) {
    const result = await purser.results.charge(bill)
    if (result._tag === "Success") return result.value
    console.log(`${result.error._tag}: money ${"outcome" in result.error ? result.error.outcome : "not_charged"}`)
    if (!result.error.isRetryable) throw result.error
    await setTimeout(500)
  }
}

const outcome = await settled({ customerId: "cust_unknown", billingPeriod: "2026-07", amountMinor: 1999, currency: "usd", stripeCustomerId: "cus_123" })
console.log(outcome._tag)
// #endregion

await purser.close()
