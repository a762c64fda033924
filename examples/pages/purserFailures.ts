import { type ChargeInput, Purser } from "@purser/purser"

const purser = await Purser.make()
await purser.openCap({ billingPeriod: "2026-06", currency: "usd", expectedMinor: 100_000 })
const first = { customerId: "cust_failures", billingPeriod: "2026-06", amountMinor: 1999, currency: "usd", stripeCustomerId: "cus_123" }
await purser.charge(first)

const show = async (invoice: ChargeInput) => {
  // #region
  const outcome = await purser.charge(invoice)                 // rejects: catch, and narrow with isPurserError(error)
  const result = await purser.results.charge(invoice)          // resolves: the compiler knows the union
  if (result._tag === "Failure" && result.error._tag === "LedgerError" && result.error.reason._tag === "ChargeConflict") {
    console.log("it was billed as", result.error.reason.expected.amountMinor)
  }
  // #endregion
  console.log(outcome._tag)
}
await show(first)
await show({ ...first, amountMinor: 2999 }).catch((error: unknown) => console.log(Purser.isError(error) ? error._tag : error))
await purser.close()
