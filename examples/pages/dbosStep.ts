// #region
import { DBOS } from "@dbos-inc/dbos-sdk"
import { type ChargeInput, Purser } from "@purser/purser"
import { chargeStep } from "../activity.ts"

const purser = await Purser.make()
// shouldRetry tells an error with this mark apart.
const chargeInvoice = chargeStep(purser, (message) => Object.assign(new Error(message), { terminal: true }))

export const bill = DBOS.registerWorkflow(
  (invoice: ChargeInput) => DBOS.runStep(() => chargeInvoice(invoice), { name: "charge", retriesAllowed: true, shouldRetry: (error) => !(error instanceof Error && "terminal" in error) }),
  { name: "bill" }
)
// #endregion

const invoice: ChargeInput = { customerId: "cust_dbos", billingPeriod: "2026-05", amountMinor: 100, currency: "usd", stripeCustomerId: "cus_123" }
await purser.openCap({ billingPeriod: "2026-05", currency: "usd", expectedMinor: 10_000 })
DBOS.setConfig({ name: "pages", systemDatabaseUrl: process.env["PURSER_DATABASE_URL"]!, logLevel: "error" })
await DBOS.launch()
console.log((await bill(invoice))._tag)
await bill({ ...invoice, amountMinor: 101 }).catch((error: unknown) => console.log(error instanceof Error && "terminal" in error))
await DBOS.shutdown()
await purser.close()
