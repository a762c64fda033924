/** Finding a PaymentIntent whose id was lost: the customer's PaymentIntents, compared by our metadata. */
import type { ChargeError, GatewayOrder, GatewayPayment } from "@purser/core"
import { Effect } from "effect"
import type { StripeClient } from "../StripeClient.ts"
import { PaymentIntent, toPayment } from "./answers.ts"
import { askFor } from "./ask.ts"
import { listOurs } from "./listOurs.ts"

/** Money that moved or may still move comes first; a canceled object is as good as none. */
const precedence: ReadonlyArray<GatewayPayment["status"]> = ["succeeded", "processing", "requires_action", "declined", "unconfirmed", "draft"]

/** Of several objects of one charge the one that counts: by {@link precedence}, and of those the oldest. */
export const best = (newestFirst: ReadonlyArray<GatewayPayment>): GatewayPayment | undefined => {
  for (const status of precedence) {
    const oldest = newestFirst.findLast((payment) => payment.status === status)
    if (oldest !== undefined) return oldest
  }
}

/**
 * The object of this charge, of whatever generation, if the customer has one that is not canceled. A restored ledger may
 * count fewer generations than Stripe has seen: a payment of any of them is the payment.
 */
export const findIntent = Effect.fnUntraced(function*(
  client: StripeClient["Service"],
  order: GatewayOrder,
  sinceMs: number
): Effect.fn.Return<GatewayPayment | undefined, ChargeError> {
  const ask = askFor(client, order)
  const ours = yield* listOurs(client, order, sinceMs, (stripe, window) =>
    stripe.paymentIntents.list({ customer: order.request.stripeCustomerId, ...window }))
  const found: Array<GatewayPayment> = []
  for (const { json, requestId } of ours) found.push(toPayment(yield* ask.read("find", PaymentIntent, json, requestId), client.scrub))
  return best(found)
})
