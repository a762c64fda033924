/**
 * The proxy's own answers, in the shape of Stripe's errors, so that every SDK raises its typed error. A refusal says
 * `Stripe-Should-Retry: false`: asking again changes nothing. `X-Spend-Proxy` tells them from Stripe's own answers.
 */
import { Money, parseCurrency } from "@purser/core"

/** A whole answer. Header names and values alternate. */
export interface OwnAnswer {
  readonly status: number
  readonly headers: ReadonlyArray<string>
  readonly body: Buffer
  readonly code: string
}

/** The figures that a refusal may name. */
export interface Figures {
  readonly capMinor: bigint | null
  readonly usedMinor: bigint | null
  readonly amountMinor: number | null
  readonly currency: string | null
  readonly period: string | null
}

const noFigures: Figures = { capMinor: null, usedMinor: null, amountMinor: null, currency: null, period: null }

const money = (minor: bigint | number | null, code: string | null): string => {
  const currency = parseCurrency(code ?? "")
  return minor === null || currency === undefined ? "?" : `${Money.formatMinor(minor, currency)} ${currency}`
}

type Text = (figures: Figures) => string

/** Every refusal by its code: the status and what it says. */
const refusals: Readonly<Record<string, readonly [status: number, text: Text]>> = {
  vault_key_unknown: [401, () => "Invalid API Key provided: this is no vault key of the spend-cap proxy."],
  vault_kill_switch: [403, () => "Every vault key is switched off (purser vault kill)."],
  vault_key_revoked: [403, () => "This vault key was revoked."],
  vault_key_expired: [403, () => "This vault key has expired."],
  endpoint_not_allowed: [403, () => "This vault key does not allow this endpoint."],
  call_limit_reached: [403, () => "This vault key has made all the calls that it may make."],
  period_not_allowed: [403, ({ period }) => `This vault key charges for ${period ?? "one period"} alone.`],
  customer_not_allowed: [403, () => "This vault key does not allow this customer."],
  customer_required: [403, () => "This vault key charges each customer once, so that a call must name its customer."],
  currency_not_allowed: [403, ({ currency }) => `This vault key charges in ${currency ?? "one currency"} alone.`],
  charge_too_large: [403, ({ amountMinor, currency }) => `${money(amountMinor, currency)} is more than one charge of this vault key may be.`],
  spend_cap_exceeded: [
    403,
    ({ amountMinor, capMinor, currency, period, usedMinor }) =>
      `${money(amountMinor, currency)} does not fit under the cap of ${money(capMinor, currency)} for ${period}: ${money(usedMinor, currency)} is taken.`
  ],
  refund_limit_exceeded: [403, () => "Refunds through this vault key would be more than was paid through it."],
  duplicate_differs: [403, () => "This customer has a charge for this period with other terms; a second one is not made."],
  duplicate_in_doubt: [403, () => "This customer has a charge for this period whose outcome is not known; a second one is not made."],
  idempotency_key_stopped: [403, () => "This Idempotency-Key is forwarded no more: Stripe carried it out twice, or its room was released by hand (purser vault log)."],
  idempotency_key_missing: [400, () => "The spend-cap proxy needs an Idempotency-Key on calls that move money."],
  request_too_large: [413, () => "The request is too large."]
}

/** The codes of all refusals that name no parameter. */
export const refusalCodes: ReadonlyArray<string> = Object.keys(refusals)

const answer = (status: number, error: Readonly<Record<string, unknown>>, code: string, requestId: string, mark: string, more: ReadonlyArray<string> = []): OwnAnswer => {
  const body = Buffer.from(JSON.stringify({ error: { ...error, request_log_url: null } }))
  return {
    status, code, body,
    headers: [
      "Content-Type", "application/json", "Content-Length", String(body.length), "Request-Id", requestId, "X-Spend-Proxy", mark, ...more
    ]
  }
}

const noRetry = ["Stripe-Should-Retry", "false"]

/** A refusal by its code. */
export const refuse = (code: string, requestId: string, figures: Partial<Figures> = {}): OwnAnswer => {
  const [status, text] = refusals[code] ?? [403, () => "Refused by the spend-cap proxy."]
  return answer(status, { code, message: text({ ...noFigures, ...figures }), type: "invalid_request_error" }, code, requestId, "refused", noRetry)
}

/** A form that is not read: 400, with the parameter. */
export const refuseForm = (given: { readonly param: string | null; readonly code: string; readonly message: string }, requestId: string): OwnAnswer =>
  answer(
    400,
    { code: given.code, message: given.message, ...(given.param === null ? {} : { param: given.param }), type: "invalid_request_error" },
    given.code, requestId, "refused", noRetry
  )

/** A used key with other parameters or another endpoint, in Stripe's words. */
export const refuseReuse = (key: string, otherRoute: boolean, requestId: string): OwnAnswer =>
  answer(400, {
    message: `Keys for idempotent requests can only be used ${
      otherRoute ? "for the same endpoint they were first used for" : "with the same parameters they were first used with"
    }. Try using a key other than '${key}' if you meant to execute a different request.`,
    type: "idempotency_error"
  }, "idempotency_key_reused", requestId, "refused", noRetry)

/** The store is away: nothing was forwarded. */
export const storeUnavailable = (requestId: string): OwnAnswer =>
  answer(
    503,
    { code: "spend_cap_unavailable", message: "The spend-cap proxy cannot reach its store. Nothing was sent to Stripe.", type: "api_error" },
    "spend_cap_unavailable", requestId, "unavailable"
  )

/** The upstream takes no connection: nothing was sent. */
export const upstreamUnreachable = (requestId: string): OwnAnswer =>
  answer(
    502,
    { code: "upstream_unreachable", message: "The spend-cap proxy could not connect to Stripe. Nothing was sent.", type: "api_error" },
    "upstream_unreachable", requestId, "unavailable"
  )
