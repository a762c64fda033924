/**
 * What a handler answers, and the errors in Stripe's shape.
 *
 * Defines `Answer`, whose body is written out only when it is sent, so that a saved answer costs a closure over
 * immutable records instead of a text. Refuses to know sockets and idempotency keys.
 */
import type Stripe from "stripe"
import type { Decline } from "../TestCards.ts"
import type { ChargeRecord, IntentRecord, PaymentMethodRecord } from "./records.ts"
import * as render from "./render.ts"

/** One answer. `saved` says whether an idempotency key keeps it: endpoint execution had begun. */
export interface Answer {
  readonly status: number
  readonly saved: boolean
  readonly headers?: Readonly<Record<string, string>>
  /** The JSON body; the id is that of the request which first got this answer. */
  readonly body: (requestId: string) => unknown
}

/** A 200 with this body. */
export const ok = (body: () => unknown): Answer => ({ status: 200, saved: true, body })

/** The parts of an error that differ; the rest of the shape is the same everywhere. */
export interface Problem {
  readonly status: number
  readonly saved: boolean
  readonly type: NonNullable<Stripe.StripeRawError["type"]>
  readonly message: string
  readonly code?: string | undefined
  readonly param?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly intent?: IntentRecord | undefined
  readonly method?: PaymentMethodRecord | undefined
  readonly declineCode?: string | undefined
  readonly adviceCode?: string | undefined
  readonly charge?: string | undefined
}

const errorBody = (problem: Problem, requestId: string): { readonly error: Stripe.StripeRawError } => {
  const error: Stripe.StripeRawError = {}
  if (problem.adviceCode !== undefined) error.advice_code = problem.adviceCode
  if (problem.charge !== undefined) error.charge = problem.charge
  if (problem.code !== undefined) error.code = problem.code
  if (problem.declineCode !== undefined) error.decline_code = problem.declineCode
  if (problem.code !== undefined) error.doc_url = render.docUrl(problem.code)
  error.message = problem.message
  if (problem.param !== undefined) error.param = problem.param
  if (problem.intent !== undefined) error.payment_intent = render.paymentIntent(problem.intent)
  if (problem.method !== undefined) error.payment_method = render.paymentMethod(problem.method)
  error.request_log_url = `https://dashboard.stripe.com/test/logs/${requestId}`
  error.type = problem.type
  return { error }
}

/** The answer that tells a problem. */
export const fail = (problem: Problem): Answer => ({
  status: problem.status,
  saved: problem.saved,
  ...(problem.headers === undefined ? {} : { headers: problem.headers }),
  body: (requestId) => errorBody(problem, requestId)
})

/** A 400 that no key remembers: the parameters were refused before anything ran. */
export const invalid = (message: string, param?: string, code?: string): Answer =>
  fail({ status: 400, saved: false, type: "invalid_request_error", message, param, code })

/** A 400 of an endpoint that had begun: remembered by the key. */
export const refuse = (message: string, code: string, param?: string, intent?: IntentRecord): Answer =>
  fail({ status: 400, saved: true, type: "invalid_request_error", message, code, param, intent })

/** 404 for the object in the URL, 400 for one named by a parameter. */
export const missing = (what: string, id: string, param: string, inUrl: boolean): Answer =>
  fail({
    status: inUrl ? 404 : 400,
    saved: true,
    type: "invalid_request_error",
    message: `No such ${what}: '${id}'`,
    code: "resource_missing",
    param
  })

/** The 402 of a declined attempt. */
export const declined = (
  decline: Decline,
  chargeRecord: ChargeRecord,
  method: PaymentMethodRecord,
  intent?: IntentRecord
): Answer =>
  fail({
    status: 402,
    saved: true,
    type: "card_error",
    message: decline.message,
    code: decline.code,
    declineCode: decline.declineCode,
    adviceCode: decline.adviceCode,
    charge: chargeRecord.id,
    intent,
    method: intent === undefined ? undefined : method
  })

/** The 404 for a URL that is no endpoint. */
export const unrecognized = (method: string, path: string): Answer =>
  fail({
    status: 404,
    saved: false,
    type: "invalid_request_error",
    message:
      `Unrecognized request URL (${method}: ${path}). Please see https://stripe.com/docs or we can help at https://support.stripe.com/.`
  })

/** The 500 of a fault. */
export const serverError = (saved: boolean): Answer =>
  fail({
    status: 500,
    saved,
    type: "api_error",
    message: "An unknown error occurred. We have been notified of the problem."
  })

/** The 409 of a key whose first request is still running. */
export const keyInUse = (key: string, type: Problem["type"]): Answer =>
  fail({
    status: 409,
    saved: false,
    type,
    code: "idempotency_key_in_use",
    headers: { "stripe-should-retry": "true" },
    message:
      `There is currently another in-progress request using this Idempotent Key (that probably means you submitted twice, and the other request is still going through): ${key}. Please try again later.`
  })

/** The 429 of a rate limiter, with the reason header. */
export const rateLimited = (reason: string): Answer =>
  fail({
    status: 429,
    saved: false,
    type: "invalid_request_error",
    code: "rate_limit",
    headers: { "stripe-rate-limited-reason": reason },
    message: "Request rate limit exceeded. Learn more about rate limits here https://stripe.com/docs/rate-limits."
  })

/** The 429 of an object that another request holds; nothing was done and there is no reason header. */
export const lockTimeout: Answer = fail({
  status: 429,
  saved: false,
  type: "invalid_request_error",
  code: "lock_timeout",
  headers: { "stripe-should-retry": "true" },
  message:
    "This object cannot be accessed right now because another API request or Stripe process is currently accessing it. If you see this error intermittently, retry the request. If you see this error frequently and are making multiple concurrent requests to a single object, make your requests serially or at a lower rate."
})
