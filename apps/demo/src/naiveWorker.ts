/**
 * The worker that many teams have: REP sockets, and the sender's idempotency key passed on to Stripe. It kills itself
 * after the charge number `DIE_AFTER`, when the money has moved and no reply was sent.
 */
import { Stripe } from "stripe"
import { Reply } from "zeromq"

interface Invoice {
  readonly customer_id: string
  readonly billing_period: string
  readonly amount_cents: number
  readonly stripe_customer_id: string
  readonly idempotency_key: string
}

const url = new URL(process.env["STRIPE_URL"]!)
const endpoints = process.env["ENDPOINTS"]!.split(",")
const dieAfter = Number(process.env["DIE_AFTER"] ?? 0)
const stripe = new Stripe("sk_test_demo", { host: url.hostname, port: url.port, protocol: "http", telemetry: false, maxNetworkRetries: 0 })
let charged = 0

const serve = async (endpoint: string) => {
  const socket = new Reply({ linger: 0 })
  await socket.bind(endpoint)
  for await (const [frame] of socket) {
    const invoice = JSON.parse(String(frame)) as Invoice
    const charge = await stripe.charges.create(
      {
        amount: invoice.amount_cents,
        currency: "usd",
        customer: invoice.stripe_customer_id,
        metadata: { customer_id: invoice.customer_id, billing_period: invoice.billing_period }
      },
      { idempotencyKey: invoice.idempotency_key }
    )
    charged += 1
    if (charged === dieAfter) process.kill(process.pid, "SIGKILL")
    await socket.send(JSON.stringify({ status: "ok", charge_id: charge.id }))
  }
}

await Promise.all(endpoints.map(serve))
