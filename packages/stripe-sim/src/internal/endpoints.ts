/**
 * The table of endpoints. A new resource is a new module and one more line here.
 */
import { type Answer, unrecognized } from "./answer.ts"
import type { Account } from "./Account.ts"
import * as charges from "./charges.ts"
import * as customers from "./customers.ts"
import * as events from "./events.ts"
import * as invoiceItems from "./invoiceItems.ts"
import * as invoices from "./invoices.ts"
import { check } from "./params.ts"
import * as paymentIntents from "./paymentIntents.ts"
import * as paymentMethods from "./paymentMethods.ts"
import * as refunds from "./refunds.ts"
import type { Call, Route } from "./route.ts"
import * as webhookEndpoints from "./webhookEndpoints.ts"

const routes: ReadonlyMap<string, Route> = new Map(
  [customers, paymentMethods, paymentIntents, charges, refunds, invoiceItems, invoices, events, webhookEndpoints]
    .flatMap(({ routes: of }) => of)
    .map((route) => [`${route.method} ${route.path}`, route])
)

// `/search` reads like an id but is an endpoint of its own, which the account does not have.
const reserved = new Set(["search"])

/** The endpoint and the object that a path names. */
export const find = (method: string, path: string): { readonly route: Route; readonly id: string } | undefined => {
  const [, version, resource, id, action, ...rest] = path.split("/")
  if (version !== "v1" || rest.length > 0 || (id !== undefined && reserved.has(id))) return undefined
  const shape = id === undefined ? `${resource}` : action === undefined ? `${resource}/:id` : `${resource}/:id/${action}`
  const route = routes.get(`${method} ${shape}`)
  return route === undefined || id === "" ? undefined : { route, id: id ?? "" }
}

/** Runs the call's endpoint. */
export const execute = (account: Account, call: Call): Answer => {
  const found = find(call.method, call.path)
  if (found === undefined) return unrecognized(call.method, call.path)
  return check(call.params, found.route.rules, call.apiVersion) ?? found.route.handler(account, call.params, found.id)
}
