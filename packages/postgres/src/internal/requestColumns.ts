/** The columns of a batch of requests, in the order in which both ways into the ledger (a claim, a run's plan) name them. */
import type { ChargeRequest } from "@purser/core"
import { bigints, booleans, ids } from "./params.ts"

/** Namespace, customer, period, item, amount, currency, Stripe customer, payment method, whether a future period is allowed. */
export const requestColumns = (requests: ReadonlyArray<ChargeRequest>) => {
  const namespaces: Array<string> = []
  const customers: Array<string> = []
  const periods: Array<string> = []
  const items: Array<string | null> = []
  const amounts: Array<number> = []
  const currencies: Array<string> = []
  const stripeCustomers: Array<string> = []
  const methods: Array<string | null> = []
  const futures: Array<boolean> = []
  // Once through the requests, which a column at a time would be nine times.
  for (const request of requests) {
    namespaces.push(request.namespace)
    customers.push(request.customerId)
    periods.push(request.billingPeriod)
    items.push(request.item ?? null)
    amounts.push(request.amountMinor)
    currencies.push(request.currency)
    stripeCustomers.push(request.stripeCustomerId)
    methods.push(request.paymentMethod ?? null)
    futures.push(request.allowFuture === true)
  }
  return [ids(namespaces), ids(customers), ids(periods), ids(items), bigints(amounts), ids(currencies), ids(stripeCustomers), ids(methods), booleans(futures)]
}
