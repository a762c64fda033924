/**
 * `/v1/webhook_endpoints`: create, retrieve, update, delete, list.
 */
import type Stripe from "stripe"
import type { Account } from "./Account.ts"
import { type Answer, invalid, missing, ok } from "./answer.ts"
import { page } from "./lists.ts"
import { mergeMetadata, type Params, required, type Rule, text, textOr, texts } from "./params.ts"
import type { EndpointRecord } from "./records.ts"
import type { Route } from "./route.ts"

const createRules = {
  api_version: "unsimulated",
  connect: "bool",
  description: "clearable",
  enabled_events: "strings",
  expand: "unsimulated",
  metadata: "metadata",
  url: "string"
} as const satisfies Record<keyof Stripe.WebhookEndpointCreateParams, Rule>

const updateRules = {
  description: "clearable",
  disabled: "bool",
  enabled_events: "strings",
  expand: "unsimulated",
  metadata: "metadata",
  url: "string"
} as const satisfies Record<keyof Stripe.WebhookEndpointUpdateParams, Rule>

const listRules = {
  ending_before: "string",
  expand: "unsimulated",
  limit: "int",
  starting_after: "string"
} as const satisfies Record<keyof Stripe.WebhookEndpointListParams, Rule>

const shape = (r: EndpointRecord): Stripe.WebhookEndpoint => ({
  id: r.id,
  object: "webhook_endpoint",
  api_version: null,
  application: null,
  created: r.createdS,
  description: r.description,
  enabled_events: [...r.events],
  livemode: false,
  metadata: r.metadata,
  status: r.disabled ? "disabled" : "enabled",
  url: r.url
})

/** Adds an endpoint; the secret is made when none is given. */
export const addEndpoint = (
  account: Account,
  given: Pick<EndpointRecord, "url" | "events" | "connect"> & Partial<EndpointRecord>
): EndpointRecord =>
  account.endpoints.put({
    id: account.nextId("we_1"),
    seq: account.endpoints.nextSeq,
    createdS: account.nowS,
    secret: account.nextId("whsec_"),
    disabled: false,
    description: null,
    metadata: {},
    ...given
  })

const isUrl = (url: string): boolean => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)

const create = (account: Account, params: Params): Answer => {
  const url = text(params, "url")
  const events = texts(params, "enabled_events")
  if (url === undefined) return required("url")
  if (!isUrl(url)) return invalid("Invalid URL: An explicit scheme (such as https) must be provided.", "url", "url_invalid")
  if (events.length === 0) return required("enabled_events")
  const made = addEndpoint(account, {
    url,
    events,
    connect: text(params, "connect") === "true",
    description: textOr(params, "description", null),
    metadata: mergeMetadata({}, params)
  })
  // Only the answer to the creation holds the secret.
  return ok(() => ({ ...shape(made), secret: made.secret }))
}

const found = (account: Account, id: string, act: (endpoint: EndpointRecord) => Answer): Answer => {
  const endpoint = account.endpoints.get(id)
  return endpoint === undefined ? missing("webhook endpoint", id, "id", true) : act(endpoint)
}

const retrieve = (account: Account, _params: Params, id: string): Answer =>
  found(account, id, (endpoint) => ok(() => shape(endpoint)))

const update = (account: Account, params: Params, id: string): Answer =>
  found(account, id, (endpoint) => {
    const url = text(params, "url") ?? endpoint.url
    if (!isUrl(url)) return invalid("Invalid URL: An explicit scheme (such as https) must be provided.", "url", "url_invalid")
    const events = texts(params, "enabled_events")
    const changed = account.endpoints.put<EndpointRecord>({
      ...endpoint,
      url,
      events: events.length === 0 ? endpoint.events : events,
      disabled: params["disabled"] === undefined ? endpoint.disabled : text(params, "disabled") === "true",
      description: textOr(params, "description", endpoint.description),
      metadata: mergeMetadata(endpoint.metadata, params)
    })
    return ok(() => shape(changed))
  })

const remove = (account: Account, _params: Params, id: string): Answer =>
  found(account, id, () => {
    account.endpoints.remove(id)
    return ok((): Stripe.DeletedWebhookEndpoint => ({ id, object: "webhook_endpoint", deleted: true }))
  })

const list = (account: Account, params: Params): Answer =>
  page(account.endpoints, params, { url: "/v1/webhook_endpoints", what: "webhook endpoint", show: shape })

/** The endpoints of this resource. */
export const routes: ReadonlyArray<Route> = [
  { method: "POST", path: "webhook_endpoints", rules: createRules, handler: create },
  { method: "GET", path: "webhook_endpoints", rules: listRules, handler: list },
  { method: "GET", path: "webhook_endpoints/:id", rules: { expand: "unsimulated" }, handler: retrieve },
  { method: "POST", path: "webhook_endpoints/:id", rules: updateRules, handler: update },
  { method: "DELETE", path: "webhook_endpoints/:id", rules: {}, handler: remove }
]
