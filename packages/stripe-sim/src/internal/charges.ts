/**
 * `/v1/charges`, the one-call API of old accounts: create, retrieve, list.
 *
 * A create here moves money each time it runs: nothing but the idempotency key stands between a repeat and a second
 * payment. That is the point of keeping it.
 */
import type Stripe from "stripe"
import type { Account } from "./Account.ts"
import { isCurrency, refusalOf } from "./amounts.ts"
import { type Answer, declined, invalid, missing, ok, refuse } from "./answer.ts"
import { authenticationRequired } from "../TestCards.ts"
import { page } from "./lists.ts"
import { integer, mergeMetadata, type Params, required, type Rule, text } from "./params.ts"
import type { ChargeRecord, PaymentMethodRecord } from "./records.ts"
import * as render from "./render.ts"
import type { Route } from "./route.ts"

const createRules = {
  amount: "int",
  application_fee: "unsimulated",
  application_fee_amount: "unsimulated",
  capture: ["true"],
  currency: "string",
  customer: "string",
  description: "string",
  destination: "unsimulated",
  expand: "unsimulated",
  metadata: "metadata",
  on_behalf_of: "unsimulated",
  radar_options: "unsimulated",
  receipt_email: "unsimulated",
  shipping: "unsimulated",
  source: "string",
  statement_descriptor: "unsimulated",
  statement_descriptor_suffix: "unsimulated",
  transfer_data: "unsimulated",
  transfer_group: "unsimulated"
} as const satisfies Record<keyof Stripe.ChargeCreateParams, Rule>

const listRules = {
  created: "range",
  customer: "string",
  ending_before: "string",
  expand: "unsimulated",
  limit: "int",
  payment_intent: "string",
  starting_after: "string",
  transfer_group: "unsimulated"
} as const satisfies Record<keyof Stripe.ChargeListParams, Rule>

/** The card to charge: the source that is named, else the customer's default card. */
const cardOf = (account: Account, source: string | undefined, customerId: string | null): PaymentMethodRecord | Answer => {
  const customer = customerId === null ? undefined : account.customer(customerId)
  if (customerId !== null && (customer === undefined || customer.deleted)) {
    return missing("customer", customerId, "customer", false)
  }
  const named = source ?? customer?.defaultPaymentMethod
  if (named === undefined && customer === undefined) return invalid("Must provide source or customer.", undefined, "parameter_missing")
  if (named === undefined || named === null) {
    return refuse("Cannot charge a customer that has no active card", "missing", "card")
  }
  const method = account.paymentMethod(named)
  if (method === undefined) return missing("token", named, "source", false)
  return method.customer !== null && method.customer !== customerId ? missing("source", named, "source", false) : method
}

// On its own: a saved answer holds the record and nothing of the request.
const shown = (charge: ChargeRecord): Answer => ok(() => render.charge(charge))

const create = (account: Account, params: Params): Answer => {
  const amountMinor = integer(params, "amount")
  const currency = text(params, "currency")?.toLowerCase()
  if (amountMinor === undefined) return required("amount")
  if (currency === undefined) return required("currency")
  if (!isCurrency(currency)) {
    return invalid(`Invalid currency: ${currency}. Stripe does not support it.`, "currency", "parameter_invalid_string")
  }
  if (amountMinor < 1) {
    return invalid("This value must be greater than or equal to 1.", "amount", "parameter_invalid_integer")
  }
  const refusal = refusalOf(amountMinor, currency, account.settings.maximumMinor)
  if (refusal !== undefined) return invalid(refusal.message, "amount", refusal.code)
  const customer = text(params, "customer") ?? null
  const method = cardOf(account, text(params, "source"), customer)
  if (!("behaviour" in method)) return method
  // The one-call API has no way to ask the holder: a card that must ask is declined.
  const decline = method.behaviour.authentication === "always" ? authenticationRequired : method.behaviour.decline ?? null
  const made: ChargeRecord = account.charges.put({
    id: account.nextId("ch_1"),
    seq: account.charges.nextSeq,
    createdS: account.nowS,
    status: decline === null ? "succeeded" : "failed",
    amountMinor,
    currency,
    customer,
    intent: null,
    method,
    description: text(params, "description") ?? null,
    metadata: mergeMetadata({}, params),
    decline
  })
  if (decline !== null) return declined(decline, made, method)
  account.move(made.id, amountMinor, currency)
  return shown(made)
}

const retrieve = (account: Account, _params: Params, id: string): Answer => {
  const found = account.charges.get(id)
  return found === undefined ? missing("charge", id, "id", true) : shown(found)
}

const list = (account: Account, params: Params): Answer => {
  const intent = text(params, "payment_intent")
  return page(account.charges, params, {
    url: "/v1/charges",
    what: "charge",
    show: render.charge,
    ...(intent === undefined ? {} : { where: (charge: ChargeRecord) => charge.intent === intent })
  })
}

/** The endpoints of this resource. */
export const routes: ReadonlyArray<Route> = [
  { method: "POST", path: "charges", rules: createRules, handler: create },
  { method: "GET", path: "charges", rules: listRules, handler: list },
  { method: "GET", path: "charges/:id", rules: { expand: "unsimulated" }, handler: retrieve }
]
