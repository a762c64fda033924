/**
 * `/v1/payment_methods`: create (cards by their test number), retrieve, attach, detach.
 *
 * Refuses to keep a card number: only Stripe's published test numbers are read, as names of a behaviour.
 */
import * as TestCards from "../TestCards.ts"
import type { Account } from "./Account.ts"
import { type Answer, invalid, missing, ok, refuse } from "./answer.ts"
import { pageOf } from "./lists.ts"
import { inHash, mergeMetadata, type Params, required, text } from "./params.ts"
import type { PaymentMethodRecord } from "./records.ts"
import * as render from "./render.ts"
import type { Route } from "./route.ts"

const numbers: Readonly<Record<string, string>> = {
  "4242424242424242": "visa",
  "5555555555554444": "mastercard",
  "378282246310005": "amex",
  "4000000000000002": "chargeDeclined",
  "4000000000009995": "chargeDeclinedInsufficientFunds",
  "4000000000009987": "chargeDeclinedLostCard",
  "4000000000009979": "chargeDeclinedStolenCard",
  "4000000000000069": "chargeDeclinedExpiredCard",
  "4000000000000127": "chargeDeclinedIncorrectCvc",
  "4000000000000119": "chargeDeclinedProcessingError",
  "4000000000000341": "chargeCustomerFail",
  "4000002760003184": "authenticationRequired",
  "4000000000003220": "threeDSecure2Required"
}

const show = (record: PaymentMethodRecord): Answer => ok(() => render.paymentMethod(record))

const create = (account: Account, params: Params): Answer => {
  if (text(params, "type") === undefined) return required("type")
  const token = inHash(params, "card", "token")
  const name = token ?? numbers[inHash(params, "card", "number") ?? ""]
  const behaviour = name === undefined ? undefined : TestCards.ofTestId(token ?? `pm_card_${name}`)
  if (behaviour === undefined) {
    return refuse("The simulator knows Stripe's test card numbers and tokens only.", "incorrect_number", "card[number]")
  }
  const made = account.addMethod(account.nextId("pm_1"), behaviour, null)
  const stored = { ...made, metadata: mergeMetadata({}, params) }
  account.methods.set(stored.id, stored)
  return show(stored)
}

const retrieve = (account: Account, _params: Params, id: string): Answer => {
  const found = account.paymentMethod(id)
  return found === undefined ? missing("PaymentMethod", id, "payment_method", true) : show(found)
}

const attach = (account: Account, params: Params, id: string): Answer => {
  const customerId = text(params, "customer")
  if (customerId === undefined) return required("customer")
  const found = account.paymentMethod(id)
  if (found === undefined) return missing("PaymentMethod", id, "payment_method", true)
  const customer = account.customer(customerId)
  if (customer === undefined || customer.deleted) return missing("customer", customerId, "customer", false)
  if (found.customer !== null && found.customer !== customerId) {
    return invalid(
      "The payment method you provided has already been attached to a customer.",
      "payment_method",
      "payment_method_already_attached"
    )
  }
  const attached = { ...found, customer: customerId }
  account.methods.set(attached.id, attached)
  account.emit("payment_method.attached", () => render.paymentMethod(attached))
  return show(attached)
}

const detach = (account: Account, _params: Params, id: string): Answer => {
  const found = account.paymentMethod(id)
  if (found === undefined) return missing("PaymentMethod", id, "payment_method", true)
  const detached = { ...found, customer: null }
  account.methods.set(detached.id, detached)
  account.emit("payment_method.detached", () => render.paymentMethod(detached))
  return show(detached)
}

/** The methods that are attached to a customer, with the default one that an account holds for every customer. */
export const listMethods = (account: Account, params: Params, customerId: string): Answer => {
  const customer = account.customer(customerId)
  const named = customer?.defaultPaymentMethod ?? null
  const standing = named === null || account.methods.has(named) ? undefined : account.paymentMethod(named)
  const type = text(params, "type")
  const methods = [
    ...(standing === undefined ? [] : [standing]),
    ...Array.from(account.methods.values()).filter((method) => method.customer === customerId)
  ].filter((method) => type === undefined || method.behaviour.type === type)
  return pageOf(methods, params, {
    url: `/v1/customers/${customerId}/payment_methods`,
    what: "payment_method",
    show: render.paymentMethod
  })
}

const list = (account: Account, params: Params): Answer => {
  const customer = text(params, "customer")
  return customer === undefined ? required("customer") : listMethods(account, params, customer)
}

const update = (account: Account, params: Params, id: string): Answer => {
  const found = account.paymentMethod(id)
  if (found === undefined) return missing("PaymentMethod", id, "payment_method", true)
  const updated = { ...found, metadata: mergeMetadata(found.metadata, params) }
  account.methods.set(updated.id, updated)
  account.emit("payment_method.updated", () => render.paymentMethod(updated))
  return show(updated)
}

/** The endpoints of this resource. */
export const routes: ReadonlyArray<Route> = [
  {
    method: "POST",
    path: "payment_methods",
    rules: { type: ["card"], card: "hash", metadata: "metadata" },
    handler: create
  },
  {
    method: "GET",
    path: "payment_methods",
    rules: { customer: "string", ending_before: "string", limit: "int", starting_after: "string", type: "string" },
    handler: list
  },
  { method: "POST", path: "payment_methods/:id", rules: { metadata: "metadata" }, handler: update },
  { method: "GET", path: "payment_methods/:id", rules: {}, handler: retrieve },
  { method: "POST", path: "payment_methods/:id/attach", rules: { customer: "string" }, handler: attach },
  { method: "POST", path: "payment_methods/:id/detach", rules: {}, handler: detach }
]
