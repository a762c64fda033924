/**
 * `/v1/account` and `/v1/balance`: what a program asks to see whose key it holds.
 */
import type Stripe from "stripe"
import type { Account } from "./Account.ts"
import { type Answer, ok } from "./answer.ts"
import { bookEntries } from "./bookkeeping.ts"
import { netMinor } from "../Books.ts"
import type { Route } from "./route.ts"

const account = (of: Account): Answer =>
  ok((): Stripe.Account => ({
    id: of.id,
    object: "account",
    charges_enabled: true,
    country: "US",
    created: of.openedS,
    default_currency: "usd",
    details_submitted: true,
    email: null,
    payouts_enabled: true,
    type: of.connectedId === null ? "standard" : "custom"
  }))

const balance = (of: Account): Answer => {
  const sums = new Map<string, number>()
  for (const entry of bookEntries(of)) sums.set(entry.currency, (sums.get(entry.currency) ?? 0) + netMinor(entry))
  const body: Stripe.Balance = {
    object: "balance",
    available: Array.from(sums, ([currency, amount]) => ({ amount, currency, source_types: { card: amount } })),
    livemode: false,
    pending: []
  }
  return ok(() => body)
}

/** The endpoints of this resource. */
export const routes: ReadonlyArray<Route> = [
  { method: "GET", path: "account", rules: { expand: "unsimulated" }, handler: account },
  { method: "GET", path: "balance", rules: { expand: "unsimulated" }, handler: balance }
]
