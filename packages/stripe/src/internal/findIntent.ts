/**
 * Finding an object whose id was lost: the customer's PaymentIntents, compared by our metadata.
 *
 * Stripe's lists are immediate but cannot filter by metadata; its search can, but lags by a minute and more, so it is not
 * used. A list that does not end is an error and not an absence.
 */
import { type ChargeError, type GatewayOrder, type GatewayPayment, UnexpectedAnswer } from "@purser/core"
import { Effect } from "effect"
import type { StripeClient } from "../StripeClient.ts"
import { Page, PaymentIntent, toPayment, WholePage } from "./answers.ts"
import { askFor } from "./ask.ts"
import { reasonOf } from "./refusal.ts"

/** Between our clock and Stripe's, and between the row's time and the call. */
const skewMs = 10 * 60_000
const pageSize = 100
const pageLimit = 100

/** Money that moved or may still move comes first; a canceled object is as good as none. */
const precedence: ReadonlyArray<GatewayPayment["status"]> = ["succeeded", "processing", "requires_action", "declined", "unconfirmed"]

const best = (newestFirst: ReadonlyArray<GatewayPayment>): GatewayPayment | undefined => {
  for (const status of precedence) {
    const oldest = newestFirst.findLast((payment) => payment.status === status)
    if (oldest !== undefined) return oldest
  }
}

/** The object of this charge, of whatever generation, if the customer has one that is not canceled. */
export const findIntent = Effect.fnUntraced(function*(
  client: StripeClient["Service"],
  order: GatewayOrder,
  sinceMs: number
): Effect.fn.Return<GatewayPayment | undefined, ChargeError> {
  const ask = askFor(client, order)
  const sinceS = Math.max(0, Math.floor((sinceMs - skewMs) / 1000))
  const found: Array<GatewayPayment> = []
  let after: string | undefined
  for (let page = 0; page < pageLimit; page++) {
    const cursor = after === undefined ? {} : { starting_after: after }
    const answer = yield* ask.call("find", (stripe) =>
      stripe.paymentIntents.list({
        customer: order.request.stripeCustomerId,
        created: { gte: sinceS },
        limit: pageSize,
        ...cursor
      }))
    if (answer.status !== 200) return yield* ask.fail(reasonOf("find", answer, client.scrub), answer.requestId)
    const { data, has_more } = yield* ask.read("find", Page, answer.json, answer.requestId)
    const whole = yield* ask.read("find", WholePage, answer.json, answer.requestId)
    for (const [index, item] of data.entries()) {
      // Other people's objects may be in states that we do not know: only ours are read whole.
      // A restored ledger may count fewer generations than Stripe has seen: a payment of any of them is the payment.
      if (item.metadata?.["charge_key"] !== order.chargeKey) continue
      found.push(toPayment(yield* ask.read("find", PaymentIntent, whole.data[index], answer.requestId), client.scrub))
    }
    if (!has_more) return best(found)
    const last = data.at(-1)?.id
    if (last === undefined || last === after) {
      return yield* ask.fail(new UnexpectedAnswer({ operation: "find", detail: "a page that leads nowhere" }), answer.requestId)
    }
    after = last
  }
  return yield* ask.fail(new UnexpectedAnswer({ operation: "find", detail: `more than ${pageLimit * pageSize} objects` }), null)
})
