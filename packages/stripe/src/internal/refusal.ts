/**
 * What an answer other than 200 means for the money.
 *
 * "Not charged" needs Stripe's own error shape: the same status from a proxy in between says nothing about what happened
 * behind it.
 */
import {
  type ChargeErrorReason, GatewayUnavailable, InvalidRequest, KeyInUse, KeyReused, PermissionDenied, RateLimited, UnexpectedAnswer
} from "@purser/core"
import { Option, Schema } from "effect"
import type { StripeAnswer } from "../StripeClient.ts"
import { ErrorBody, type StripeProblem } from "./answers.ts"

/** The error in Stripe's shape, if the body has one. */
export const problemOf = (answer: StripeAnswer): StripeProblem | undefined =>
  Option.getOrUndefined(Option.map(Schema.decodeUnknownOption(ErrorBody)(answer.json), (body) => body.error))

const retryAfterMs = (answer: StripeAnswer): number | null => {
  const text = answer.headers["retry-after"]
  return text !== undefined && /^\d{1,6}(\.\d+)?$/.test(text) ? Math.ceil(Number(text) * 1000) : null
}

const busy = new Set(["rate_limit", "lock_timeout"])

/** The reason of an answer whose status is not 200. A decline (402) is left to those who hold the object. */
export const reasonOf = (operation: string, answer: StripeAnswer, clean: (text: string) => string): ChargeErrorReason => {
  const { status } = answer
  const problem = problemOf(answer)
  const code = problem?.code ?? null
  const detail = clean(problem?.message ?? (answer.json === undefined ? "the body is not JSON" : "the body is not Stripe's"))
  // Any 5xx, also a replayed one: the work may have been done before it broke.
  if (status >= 500) return new GatewayUnavailable({ operation, status, replayed: answer.replayed, detail })
  if (problem === undefined) return new UnexpectedAnswer({ operation, detail: `status ${status}, and ${detail}` })
  if (status === 429 || ((status === 400 || status === 409) && code !== null && busy.has(code))) {
    const limitReason = answer.headers["stripe-rate-limited-reason"] ?? code
    return new RateLimited({ retryAfterMs: retryAfterMs(answer), limitReason })
  }
  if (status === 409) return new KeyInUse({ operation })
  if (problem.type === "idempotency_error") return new KeyReused({ operation, detail })
  if (status === 401 || status === 403) {
    // The spend-cap proxy's own refusal: its code says which rule.
    return new PermissionDenied({ detail: answer.headers["x-spend-proxy"] === "refused" && code !== null ? `${code}: ${detail}` : detail })
  }
  if (status === 400 || status === 404) return new InvalidRequest({ param: problem.param ?? null, code, detail })
  return new UnexpectedAnswer({ operation, detail: `status ${status}: ${detail}` })
}
