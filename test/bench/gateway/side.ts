/** Two steps at Stripe: `side.ts PROGRAM COUNT IN_FLIGHT RUN URL` creates and confirms, through the gateway or by bare POSTs of the same parameters. */
import { ChargeGateway } from "@purser/core"
import { StripeClient, StripeGateway } from "@purser/stripe"
import { chargeFor } from "@purser/testkit/chargeFor"
import { Effect, Layer, ManagedRuntime, Redacted } from "effect"
import { setFlagsFromString } from "node:v8"
import { Pool } from "undici"
import { eachOf } from "../charge/jobs.ts"
import { inLoops } from "../support/loops.ts"
import { heard, say, timed } from "../support/side.ts"

// As the command has it for itself; for both, so that they differ in nothing else.
setFlagsFromString("--no-allocation-site-pretenuring")

const [program, countText, inFlightText, run, url] = process.argv.slice(2) as [string, string, string, string, string]
const [count, inFlight] = [Number(countText), Number(inFlightText)]
const requestsOf = (name: string, many: number) => Array.from({ length: many }, (_, index) => chargeFor(`${run}${name}${index}`, "2026-07", { amountMinor: 1000 + index % 9000, allowFuture: false }))
type Request = ReturnType<typeof requestsOf>[number]

const byGateway = async () => {
  const runtime = ManagedRuntime.make(StripeGateway.layerPaymentIntentsWith().pipe(Layer.provide(StripeClient.layer({ key: Redacted.make("sk_test_bench"), url, maxConnections: inFlight }))))
  const gateway = await runtime.runPromise(ChargeGateway)
  const pay = (request: Request) => {
    const order = { chargeKey: request.chargeKey, request, generation: 1 }
    return Effect.flatMap(gateway.create(order, ""), ({ id }) =>
      Effect.flatMap(gateway.confirm(order, { id, attempt: 1, paymentMethod: "pm_card_visa", keySuffix: "" }), ({ status }) =>
        status === "succeeded" ? Effect.void : Effect.die(new Error(status))))
  }
  return (requests: ReadonlyArray<Request>) => runtime.runPromise(inLoops(requests.length, inFlight, (index) => pay(requests[index]!)))
}

const byPosts = async () => {
  const pool = new Pool(url, { connections: inFlight, pipelining: 1 })
  const post = async (path: string, idempotencyKey: string, form: Record<string, string>) => {
    const { body, statusCode } = await pool.request({
      path,
      method: "POST",
      headers: { authorization: "Bearer sk_test_bench", "content-type": "application/x-www-form-urlencoded", "idempotency-key": idempotencyKey },
      body: new URLSearchParams(form).toString()
    })
    const answer = await body.json() as { readonly id: string; readonly status: string }
    if (statusCode !== 200) throw new Error(`status ${statusCode}`)
    return answer
  }
  const pay = async (request: Request) => {
    const { id } = await post("/v1/payment_intents", `${request.chargeKey}:create`, {
      amount: String(request.amountMinor), currency: request.currency, customer: request.stripeCustomerId, "allowed_payment_method_types[0]": "card",
      "metadata[charge_key]": request.chargeKey, "metadata[customer_id]": request.customerId, "metadata[billing_period]": request.billingPeriod,
      "metadata[namespace]": request.namespace, "metadata[generation]": "1"
    })
    const { status } = await post(`/v1/payment_intents/${id}/confirm`, `${request.chargeKey}:confirm`, { payment_method: "pm_card_visa", off_session: "true" })
    if (status !== "succeeded") throw new Error(status)
  }
  return (requests: ReadonlyArray<Request>) => eachOf(requests, { inFlight }, pay)
}

const charge = await (program === "gateway" ? byGateway() : byPosts())
await charge(requestsOf("w", Math.ceil(count / 2)))
const requests = requestsOf("m", count)
say("ready")
await heard()
say(await timed(count, () => charge(requests)))
await heard()
process.exit(0)
