/**
 * The table of endpoints. A new resource is a new module and one more line here.
 */
import { type Answer, unrecognized } from "./answer.ts"
import type { Account } from "./Account.ts"
import * as balance from "./balance.ts"
import * as charges from "./charges.ts"
import * as customers from "./customers.ts"
import * as disputes from "./disputes.ts"
import * as events from "./events.ts"
import * as invoiceItems from "./invoiceItems.ts"
import * as invoices from "./invoices.ts"
import { check } from "./params.ts"
import * as paymentIntents from "./paymentIntents.ts"
import * as paymentMethods from "./paymentMethods.ts"
import * as refunds from "./refunds.ts"
import type { Call, Route } from "./route.ts"
import * as search from "./search.ts"
import * as testClocks from "./testClocks.ts"
import * as webhookEndpoints from "./webhookEndpoints.ts"

const routes: ReadonlyMap<string, Route> = new Map(
  [customers, paymentMethods, paymentIntents, charges, refunds, disputes, invoiceItems, invoices, events, webhookEndpoints, search, balance, testClocks]
    .flatMap(({ routes: of }) => of)
    .map((route) => [`${route.method} ${route.path}`, route])
)

// These read like ids but are endpoints of their own.
const reserved = new Set(["search"])

/** The parts of a path after `/v1/`; a namespace such as `test_helpers/test_clocks` is one part. */
const partsOf = (path: string): ReadonlyArray<string> => {
  const [, version, first = "", second, ...rest] = path.split("/")
  if (version !== "v1") return []
  return first === "test_helpers" ? [`${first}/${second}`, ...rest] : [first, ...(second === undefined ? [] : [second]), ...rest]
}

/** The endpoint and the object that a path names. */
export const find = (method: string, path: string): { readonly route: Route; readonly id: string } | undefined => {
  const [resource, id, action, ...rest] = partsOf(path)
  if (resource === undefined || rest.length > 0) return undefined
  if (id !== undefined && action === undefined && reserved.has(id)) {
    const route = routes.get(`${method} ${resource}/${id}`)
    return route === undefined ? undefined : { route, id: "" }
  }
  const shape = id === undefined ? resource : action === undefined ? `${resource}/:id` : `${resource}/:id/${action}`
  const route = routes.get(`${method} ${shape}`)
  return route === undefined || id === "" ? undefined : { route, id: id ?? "" }
}

/** Runs the call's endpoint. */
export const execute = (account: Account, call: Call): Answer => {
  const found = find(call.method, call.path)
  if (found === undefined) return unrecognized(call.method, call.path)
  return check(call.params, found.route.rules, call.apiVersion) ?? found.route.handler(account, call.params, found.id)
}
