// #region
import { Stripe } from "stripe"

const stripe = new Stripe(process.env["VAULT_KEY"]!, { host: "127.0.0.1", port: Number(process.env["PROXY_PORT"] ?? 12112), protocol: "http" })
await stripe.charges.create({ amount: 4200, currency: "usd", customer: "cus_1" }, { idempotencyKey: "c1-2026-07" })
// #endregion

const again = await stripe.charges.create({ amount: 4200, currency: "usd", customer: "cus_1" }, { idempotencyKey: "c1-2026-07" })
console.log(again.status, again.amount)
