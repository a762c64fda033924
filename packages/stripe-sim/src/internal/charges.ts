/**
 * `/v1/charges`, the one-call API of old accounts: create, retrieve, update, list.
 *
 * A create here moves money each time it runs: nothing but the idempotency key stands between a repeat and a second
 * payment. That is the point of keeping it.
 */
import type Stripe from "stripe"
import type { Account } from "./Account.ts"
import { type Answer, declined, invalid, missing, ok, refuse } from "./answer.ts"
import { authenticationRequired, type Decline } from "../TestCards.ts"
import { checkTerms } from "./checks.ts"
import { afterSuccess } from "./disputes.ts"
import { page } from "./lists.ts"
import { integer, mergeMetadata, type Params, required, type Rule, text, textOr, texts, unexpandable } from "./params.ts"
import type { ChargeRecord, PaymentMethodRecord } from "./records.ts"
import * as refunds from "./refunds.ts"
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

const updateRules = {
  customer: "unsimulated",
  description: "clearable",
  expand: "unsimulated",
  fraud_details: "unsimulated",
  metadata: "metadata",
  receipt_email: "unsimulated",
  shipping: "unsimulated",
  transfer_group: "unsimulated"
} as const satisfies Record<keyof Stripe.ChargeUpdateParams, Rule>

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

const settlementFailure: Decline = {
  code: "card_declined",
  declineCode: "generic_decline",
  message: "The payment could not be settled."
}

/** Ends a charge that waits for its bank; without an outcome the method decides. Undefined when it does not wait. */
export const settleCharge = (
  account: Account,
  id: string,
  outcome: "succeeded" | "failed" | undefined
): ChargeRecord | undefined => {
  const charge = account.charges.get(id)
  if (charge === undefined || charge.status !== "pending" || charge.intent !== null) return undefined
  const decline = outcome === "succeeded"
    ? null
    : charge.method.behaviour.decline ?? (outcome === "failed" ? settlementFailure : null)
  const settled = account.charges.put<ChargeRecord>({ ...charge, status: decline === null ? "succeeded" : "failed", decline })
  if (decline === null) account.move(settled.id, settled.amountMinor, settled.currency)
  account.emit(`charge.${settled.status}`, () => render.charge(settled))
  if (decline === null) afterSuccess(account, settled.id)
  return account.charges.get(id)
}

const create = (account: Account, params: Params): Answer => {
  const amountMinor = integer(params, "amount")
  const currency = text(params, "currency")?.toLowerCase()
  if (amountMinor === undefined) return required("amount")
  if (currency === undefined) return required("currency")
  const refused = checkTerms(account, amountMinor, currency)
  if (refused !== undefined) return refused
  const customer = text(params, "customer") ?? null
  const method = cardOf(account, text(params, "source"), customer)
  if (!("behaviour" in method)) return method
  // The one-call API has no way to ask the holder: a card that must ask is declined.
  const decline = method.behaviour.authentication === "always" ? authenticationRequired : method.behaviour.decline ?? null
  const made: ChargeRecord = account.charges.put({
    id: account.nextId("ch_1"),
    seq: account.charges.nextSeq,
    createdS: account.nowS,
    status: method.behaviour.settlesLater ? "pending" : decline === null ? "succeeded" : "failed",
    amountMinor,
    currency,
    customer,
    intent: null,
    method,
    description: text(params, "description") ?? null,
    metadata: mergeMetadata({}, params),
    decline: method.behaviour.settlesLater ? null : decline,
    refundedMinor: 0,
    dispute: null
  })
  account.emit(`charge.${made.status}`, () => render.charge(made))
  if (made.status === "pending") {
    if (method.behaviour.settlesByClock === true) {
      account.laterFor(customer, account.settings.bankSettlesMs, () => settleCharge(account, made.id, undefined))
    }
    return shown(made)
  }
  if (decline !== null) return declined(decline, made, method)
  account.move(made.id, amountMinor, currency)
  afterSuccess(account, made.id)
  return shown(made)
}

const found = (account: Account, id: string, act: (charge: ChargeRecord) => Answer): Answer => {
  const charge = account.charges.get(id)
  return charge === undefined ? missing("charge", id, "id", true) : act(charge)
}

const retrieve = (account: Account, params: Params, id: string): Answer =>
  found(account, id, (charge) => {
    const wanted = texts(params, "expand")
    if (wanted.length === 0) return shown(charge)
    const refused = unexpandable(params, ["customer", "payment_intent", "refunds"])
    if (refused !== undefined) return refused
    const customer = wanted.includes("customer") ? account.customer(charge.customer ?? "") : undefined
    const intent = wanted.includes("payment_intent") ? account.intents.get(charge.intent ?? "") : undefined
    const body = render.charge(charge, {
      ...(customer === undefined
        ? {}
        : { customer: customer.deleted ? render.deletedCustomer(customer.id) : render.customer(customer) }),
      ...(intent === undefined ? {} : { payment_intent: render.paymentIntent(intent) }),
      ...(wanted.includes("refunds") ? { refunds: refunds.ofCharge(account, charge) } : {})
    })
    return ok(() => body)
  })

const update = (account: Account, params: Params, id: string): Answer =>
  found(account, id, (charge) => {
    const updated = account.charges.put({
      ...charge,
      description: textOr(params, "description", charge.description),
      metadata: mergeMetadata(charge.metadata, params)
    })
    account.emit("charge.updated", () => render.charge(updated))
    return shown(updated)
  })

const list = (account: Account, params: Params): Answer => {
  const intent = text(params, "payment_intent")
  return page(account.charges, params, {
    url: "/v1/charges",
    what: "charge",
    // An intent's attempts are among the few charges of its customer.
    group: text(params, "customer") ?? account.intents.get(intent ?? "")?.customer ?? undefined,
    show: (charge) => render.charge(charge),
    ...(intent === undefined ? {} : { where: (charge: ChargeRecord) => charge.intent === intent })
  })
}

/** The endpoints of this resource. */
export const routes: ReadonlyArray<Route> = [
  { method: "POST", path: "charges", rules: createRules, handler: create },
  { method: "GET", path: "charges", rules: listRules, handler: list },
  { method: "GET", path: "charges/:id", rules: { expand: "strings" }, handler: retrieve },
  { method: "POST", path: "charges/:id", rules: updateRules, handler: update }
]
