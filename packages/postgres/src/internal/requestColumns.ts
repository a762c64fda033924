/** The columns of a batch of requests, in the order in which both ways into the ledger (a claim, a run's plan) name them. */
import type { ChargeRequest } from "@purser/core"
import { bigints, booleans, texts } from "./params.ts"

/** Namespace, customer, period, item, amount, currency, Stripe customer, payment method, whether a future period is allowed. */
export const requestColumns = (requests: ReadonlyArray<ChargeRequest>) => [
  texts(requests.map((request) => request.namespace)),
  texts(requests.map((request) => request.customerId)),
  texts(requests.map((request) => request.billingPeriod)),
  texts(requests.map((request) => request.item ?? null)),
  bigints(requests.map((request) => request.amountMinor)),
  texts(requests.map((request) => request.currency)),
  texts(requests.map((request) => request.stripeCustomerId)),
  texts(requests.map((request) => request.paymentMethod ?? null)),
  booleans(requests.map((request) => request.allowFuture === true))
]
