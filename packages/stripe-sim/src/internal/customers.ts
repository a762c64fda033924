/**
 * `/v1/customers`: create, retrieve, update, delete.
 */
import type Stripe from "stripe"
import type { Account } from "./Account.ts"
import { type Answer, missing, ok } from "./answer.ts"
import { pageOf } from "./lists.ts"
import { inHash, integer, mergeMetadata, type Params, type Rule, text, textOr } from "./params.ts"
import { listMethods } from "./paymentMethods.ts"
import type { CustomerRecord } from "./records.ts"
import * as render from "./render.ts"
import type { Route } from "./route.ts"

const updateRules = {
  address: "unsimulated",
  balance: "int",
  business_name: "unsimulated",
  cash_balance: "unsimulated",
  default_source: "unsimulated",
  description: "clearable",
  email: "clearable",
  expand: "unsimulated",
  individual_name: "unsimulated",
  invoice_prefix: "unsimulated",
  invoice_settings: "hash",
  metadata: "metadata",
  name: "clearable",
  next_invoice_sequence: "unsimulated",
  phone: "clearable",
  preferred_locales: "unsimulated",
  shipping: "unsimulated",
  source: "unsimulated",
  tax: "unsimulated",
  tax_exempt: "unsimulated",
  validate: "bool"
} as const satisfies Record<keyof Stripe.CustomerUpdateParams, Rule>

const { default_source: _, ...shared } = updateRules
const createRules = {
  ...shared,
  payment_method: "string",
  tax_id_data: "unsimulated",
  test_clock: "string"
} as const satisfies Record<keyof Stripe.CustomerCreateParams, Rule>

const listRules = {
  created: "range",
  email: "string",
  ending_before: "string",
  expand: "unsimulated",
  limit: "int",
  starting_after: "string",
  test_clock: "string"
} as const satisfies Record<keyof Stripe.CustomerListParams, Rule>

const listMethodsRules = {
  allow_redisplay: "unsimulated",
  ending_before: "string",
  expand: "unsimulated",
  limit: "int",
  starting_after: "string",
  type: "string"
} as const satisfies Record<keyof Stripe.CustomerListPaymentMethodsParams, Rule>

const fields = (stored: CustomerRecord, params: Params): CustomerRecord => ({
  ...stored,
  description: textOr(params, "description", stored.description),
  email: textOr(params, "email", stored.email),
  name: textOr(params, "name", stored.name),
  phone: textOr(params, "phone", stored.phone),
  balanceMinor: integer(params, "balance") ?? stored.balanceMinor,
  metadata: mergeMetadata(stored.metadata, params)
})

/** The customer with the default card that `invoice_settings` names, or why not. */
const withDefault = (account: Account, stored: CustomerRecord, params: Params): CustomerRecord | Answer => {
  const named = inHash(params, "invoice_settings", "default_payment_method")
  if (named === undefined) return stored
  if (named === "") return { ...stored, defaultPaymentMethod: null }
  const method = account.paymentMethod(named)
  if (method === undefined) {
    return missing("PaymentMethod", named, "invoice_settings[default_payment_method]", false)
  }
  account.methods.set(method.id, { ...method, customer: stored.id })
  return { ...stored, defaultPaymentMethod: method.id }
}

const save = (
  account: Account,
  made: CustomerRecord | Answer,
  type: "customer.created" | "customer.updated"
): Answer => {
  if (!("id" in made)) return made
  account.customers.set(made.id, made)
  account.emit(type, () => render.customer(made))
  return ok(() => render.customer(made))
}

const create = (account: Account, params: Params): Answer => {
  const testClock = text(params, "test_clock") ?? null
  const clock = account.clocks.get(testClock ?? "")
  if (testClock !== null && clock === undefined) return missing("test clock", testClock, "test_clock", false)
  const blank: CustomerRecord = {
    id: account.nextId("cus_"),
    createdS: clock?.frozenS ?? account.nowS,
    testClock,
    deleted: false,
    email: null,
    name: null,
    description: null,
    phone: null,
    metadata: {},
    defaultPaymentMethod: null,
    balanceMinor: 0
  }
  const named = text(params, "payment_method")
  if (named !== undefined) {
    const method = account.paymentMethod(named)
    if (method === undefined) return missing("PaymentMethod", named, "payment_method", false)
    account.methods.set(method.id, { ...method, customer: blank.id })
  }
  return save(account, withDefault(account, fields(blank, params), params), "customer.created")
}

const retrieve = (account: Account, _params: Params, id: string): Answer => {
  const found = account.customer(id)
  if (found === undefined) return missing("customer", id, "id", true)
  return ok(() => found.deleted ? render.deletedCustomer(id) : render.customer(found))
}

const update = (account: Account, params: Params, id: string): Answer => {
  const found = account.customer(id)
  if (found === undefined || found.deleted) return missing("customer", id, "id", true)
  return save(account, withDefault(account, fields(found, params), params), "customer.updated")
}

const remove = (account: Account, _params: Params, id: string): Answer => {
  const found = account.customer(id)
  if (found === undefined || found.deleted) return missing("customer", id, "id", true)
  account.customers.set(id, { ...found, deleted: true, defaultPaymentMethod: null })
  account.emit("customer.deleted", () => render.customer(found))
  return ok(() => render.deletedCustomer(id))
}

const list = (account: Account, params: Params): Answer => {
  const email = text(params, "email")
  const clock = text(params, "test_clock")
  const customers = Array.from(account.customers.values()).filter((customer) =>
    !customer.deleted && (email === undefined || customer.email === email) && (clock === undefined || customer.testClock === clock)
  )
  return pageOf(customers, params, { url: "/v1/customers", what: "customer", show: render.customer })
}

const methodsOf = (account: Account, params: Params, id: string): Answer => {
  const found = account.customer(id)
  return found === undefined || found.deleted ? missing("customer", id, "customer", true) : listMethods(account, params, id)
}

/** The endpoints of this resource. */
export const routes: ReadonlyArray<Route> = [
  { method: "POST", path: "customers", rules: createRules, handler: create },
  { method: "GET", path: "customers", rules: listRules, handler: list },
  { method: "GET", path: "customers/:id/payment_methods", rules: listMethodsRules, handler: methodsOf },
  { method: "GET", path: "customers/:id", rules: { expand: "unsimulated" }, handler: retrieve },
  { method: "POST", path: "customers/:id", rules: updateRules, handler: update },
  { method: "DELETE", path: "customers/:id", rules: {}, handler: remove }
]
