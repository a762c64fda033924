/** What a customer pays with when the request names nothing. */
import { type ChargeError, type GatewayOrder, InvalidRequest, UnexpectedAnswer } from "@purser/core"
import { Effect } from "effect"
import type { StripeClient } from "../StripeClient.ts"
import { Customer, defaultMethodOf } from "./answers.ts"
import { askFor } from "./ask.ts"
import { reasonOf } from "./refusal.ts"

/** The customer's default; `source` first for the one-call API, which knows no payment methods. */
export const customerMethod = Effect.fnUntraced(function*(
  client: StripeClient["Service"],
  order: GatewayOrder,
  first: "payment_method" | "source"
): Effect.fn.Return<string, ChargeError> {
  const ask = askFor(client, order)
  const operation = "default_payment_method"
  const id = order.request.stripeCustomerId
  const answer = yield* ask.call(operation, (stripe) => stripe.customers.retrieve(id))
  if (answer.status !== 200) return yield* ask.fail(reasonOf(operation, answer, client.scrub), answer.requestId)
  const customer = yield* ask.read(operation, Customer, answer.json, answer.requestId)
  const invalid = (code: string, detail: string) => ask.fail(new InvalidRequest({ param: "customer", code, detail }), answer.requestId)
  if (customer.id !== id) return yield* ask.fail(new UnexpectedAnswer({ operation, detail: "another customer" }), answer.requestId)
  if (customer.deleted === true) return yield* invalid("resource_missing", "the customer was deleted")
  const method = defaultMethodOf(customer, first)
  return method === null ? yield* invalid("payment_method_missing", "the customer has no default payment method") : method
})
