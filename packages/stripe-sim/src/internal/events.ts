/**
 * `/v1/events`: list and retrieve.
 */
import type Stripe from "stripe"
import type { Account } from "./Account.ts"
import { type Answer, invalid, missing, ok } from "./answer.ts"
import { type EventRecord, shape } from "./EventLog.ts"
import { page } from "./lists.ts"
import { type Params, type Rule, text, texts } from "./params.ts"
import type { Route } from "./route.ts"

const listRules = {
  created: "range",
  delivery_success: "bool",
  ending_before: "string",
  expand: "unsimulated",
  limit: "int",
  starting_after: "string",
  type: "string",
  types: "strings"
} as const satisfies Record<keyof Stripe.EventListParams, Rule>

const typesLimit = 20

/** True when the event's type is the one that is asked for; a last part `*` stands for any. */
export const isOfType = (type: string, asked: string): boolean =>
  asked === "*" || asked === type || (asked.endsWith(".*") && type.startsWith(asked.slice(0, -1)))

const list = (account: Account, params: Params): Answer => {
  const one = text(params, "type")
  const several = texts(params, "types")
  if (one !== undefined && several.length > 0) {
    return invalid("You may only specify one of these parameters: type, types.", "type", "parameters_exclusive")
  }
  if (several.length > typesLimit) return invalid(`You may only specify up to ${typesLimit} types.`, "types")
  const asked = one === undefined ? several : [one]
  const delivered = text(params, "delivery_success")
  return page(account.events, params, {
    url: "/v1/events",
    what: "event",
    group: undefined,
    show: shape,
    where: (event: EventRecord) =>
      (asked.length === 0 || asked.some((type) => isOfType(event.type, type))) &&
      (delivered === undefined || (event.pendingWebhooks === 0) === (delivered === "true"))
  })
}

const retrieve = (account: Account, _params: Params, id: string): Answer => {
  const event = account.events.get(id)
  return event === undefined ? missing("event", id, "id", true) : ok(() => shape(event))
}

/** The endpoints of this resource. */
export const routes: ReadonlyArray<Route> = [
  { method: "GET", path: "events", rules: listRules, handler: list },
  { method: "GET", path: "events/:id", rules: { expand: "unsimulated" }, handler: retrieve }
]
