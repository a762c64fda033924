// #region
import type { ChargeInput } from "@purser/purser"
import { proxyActivities } from "@temporalio/workflow"
import type { activities } from "./temporalActivity.ts"

// Its retries are Temporal's. Give it more time than a lease (15 s) and its work take.
const { chargeInvoice } = proxyActivities<typeof activities>({ startToCloseTimeout: "2 minutes", retry: { maximumInterval: "5 minutes" } })

export const monthEnd = async (invoices: ReadonlyArray<ChargeInput>) => {
  for (const invoice of invoices) await chargeInvoice(invoice)
}
// #endregion

// A workflow has no activities but in Temporal's own sandbox.
await monthEnd([{ customerId: "c", billingPeriod: "2026-05", amountMinor: 1, currency: "usd", stripeCustomerId: "cus" }]).catch((error: Error) => console.log(error.name))
