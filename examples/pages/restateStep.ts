// #region
import { type Context, service, TerminalError } from "@restatedev/restate-sdk"
import { type ChargeInput, Purser } from "@purser/purser"
import { chargeStep } from "../activity.ts"

const purser = await Purser.make()
// A terminal error ends the invocation, any other is tried again.
const chargeInvoice = chargeStep(purser, (message) => new TerminalError(message))

export const billing = service({
  name: "billing",
  handlers: { bill: (context: Context, invoice: ChargeInput) => context.run("charge", () => chargeInvoice(invoice)) }
})
// #endregion

// As Restate calls it, which needs a server of Restate's.
const invoice: ChargeInput = { customerId: "cust_restate", billingPeriod: "2026-05", amountMinor: 100, currency: "usd", stripeCustomerId: "cus_123" }
await purser.openCap({ billingPeriod: "2026-05", currency: "usd", expectedMinor: 10_000 })
console.log(billing.name, (await chargeInvoice(invoice))._tag)
await chargeInvoice({ ...invoice, amountMinor: 101 }).catch((error: unknown) => console.log(error instanceof TerminalError))
await purser.close()
