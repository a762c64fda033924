/**
 * Why a call of Stripe brought no answer. Whether an answer is good news is not decided here: a 500 is an answer.
 */
import { Schema } from "effect"

const id = (name: string) => `@purser/stripe/StripeCallError/${name}`

/** The deadline passed; the request was aborted, and may have been carried out. */
export class CallTimeout extends Schema.TaggedError<CallTimeout>(id("CallTimeout"))("CallTimeout", {
  timeoutMs: Schema.Finite
}) {
  override get message() {
    return `no answer in ${this.timeoutMs} ms`
  }
  get isRetryable() {
    return true
  }
}

/** The connection failed; the request may have been carried out. `status` is known when the body was cut. */
export class ConnectionFailed extends Schema.TaggedError<ConnectionFailed>(id("ConnectionFailed"))("ConnectionFailed", {
  code: Schema.NullOr(Schema.String),
  status: Schema.NullOr(Schema.Int),
  detail: Schema.String
}) {
  override get message() {
    return this.detail
  }
  get isRetryable() {
    return true
  }
}

/** The SDK refused to build the request: nothing left this process. */
export class NotSent extends Schema.TaggedError<NotSent>(id("NotSent"))("NotSent", { detail: Schema.String }) {
  override get message() {
    return `not sent: ${this.detail}`
  }
  get isRetryable() {
    return false
  }
}

/** A call without an answer; `requestId` is known when the headers arrived. */
export class StripeCallError extends Schema.TaggedError<StripeCallError>("@purser/stripe/StripeCallError")("StripeCallError", {
  reason: Schema.Union([CallTimeout, ConnectionFailed, NotSent]),
  operation: Schema.String,
  requestId: Schema.NullOr(Schema.String)
}) {
  override get message() {
    return `${this.operation}: ${this.reason.message}`
  }
  get isRetryable() {
    return this.reason.isRetryable
  }
}
