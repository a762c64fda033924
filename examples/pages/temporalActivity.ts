// #region
import { type ChargeInput, Purser } from "@purser/purser"
import { ApplicationFailure } from "@temporalio/common"
import { chargeStep } from "../activity.ts"

const purser = await Purser.make()
export const activities = { chargeInvoice: chargeStep(purser, (message) => ApplicationFailure.nonRetryable(message)) }
// #endregion

// As Temporal's worker calls it, which needs a server of Temporal's.
const invoice: ChargeInput = { customerId: "cust_temporal", billingPeriod: "2026-05", amountMinor: 100, currency: "usd", stripeCustomerId: "cus_123" }
await purser.openCap({ billingPeriod: "2026-05", currency: "usd", expectedMinor: 10_000 })
console.log((await activities.chargeInvoice(invoice))._tag)
await activities.chargeInvoice({ ...invoice, amountMinor: 101 }).catch((error: unknown) => console.log(error instanceof ApplicationFailure && error.nonRetryable))
await purser.close()
