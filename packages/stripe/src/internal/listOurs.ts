/**
 * Reading a customer's objects, page by page, and keeping those that carry our charge key.
 *
 * Stripe's lists are immediate but cannot filter by metadata; its search can, but lags by a minute and more, so it is not
 * used. A list that does not end is an error and not an absence.
 */
import { type ChargeError, UnexpectedAnswer } from "@purser/core"
import { Effect } from "effect"
import type { Stripe } from "stripe"
import type { StripeClient } from "../StripeClient.ts"
import { Page, WholePage } from "./answers.ts"
import { askFor, type Whose } from "./ask.ts"
import { reasonOf } from "./refusal.ts"

/** Between our clock and Stripe's, and between the row's time and the call. */
const skewMs = 10 * 60_000
const pageSize = 100
const pageLimit = 100

/** What every list call takes. */
export interface ListWindow {
  readonly created: { readonly gte: number }
  readonly limit: number
  readonly starting_after?: string
}

/** The objects with our charge key since a time, newest first, each as it came. */
export const listOurs = Effect.fnUntraced(function*(
  client: StripeClient["Service"],
  order: Whose,
  sinceMs: number,
  list: (stripe: Stripe, window: ListWindow) => PromiseLike<unknown>
): Effect.fn.Return<ReadonlyArray<{ readonly json: unknown; readonly requestId: string | null }>, ChargeError> {
  const ask = askFor(client, order)
  const gte = Math.max(0, Math.floor((sinceMs - skewMs) / 1000))
  const found: Array<{ readonly json: unknown; readonly requestId: string | null }> = []
  let after: string | undefined
  for (let page = 0; page < pageLimit; page++) {
    const window = { created: { gte }, limit: pageSize, ...(after === undefined ? {} : { starting_after: after }) }
    const answer = yield* ask.call("find", (stripe) => list(stripe, window))
    if (answer.status !== 200) return yield* ask.fail(reasonOf("find", answer, client.scrub), answer.requestId)
    const { data, has_more } = yield* ask.read("find", Page, answer.json, answer.requestId)
    const whole = yield* ask.read("find", WholePage, answer.json, answer.requestId)
    for (const [index, item] of data.entries()) {
      // Other people's objects may be in states that we do not know: only ours are read whole.
      if (item.metadata?.["charge_key"] === order.chargeKey) found.push({ json: whole.data[index], requestId: answer.requestId })
    }
    if (!has_more) return found
    const last = data.at(-1)?.id
    if (last === undefined || last === after) {
      return yield* ask.fail(new UnexpectedAnswer({ operation: "find", detail: "a page that leads nowhere" }), answer.requestId)
    }
    after = last
  }
  return yield* ask.fail(new UnexpectedAnswer({ operation: "find", detail: `more than ${pageLimit * pageSize} objects` }), null)
})
