/**
 * What the payment processor refuses or fails with, sorted by what is known about the money: `not_charged` needs an
 * answer that proves it; a connection error, a 5xx, a 409 or an answer that cannot be read is `unknown`.
 */
import { Effect, Schema } from "effect"
import { ChargeKey } from "./ChargeKey.ts"

/** Absent on the wire of older peers, null where nothing is known. */
export const LaterText = Schema.NullOr(Schema.String).pipe(
  Schema.withDecodingDefaultKey(Effect.succeed(null)),
  Schema.withConstructorDefault(Effect.succeed(null))
)

const id = (name: string) => `@purser/core/ChargeError/${name}`

/** The payment method was refused by its bank or network. */
export class CardDeclined extends Schema.TaggedError<CardDeclined>(id("CardDeclined"))("CardDeclined", {
  code: Schema.String,
  declineCode: Schema.NullOr(Schema.String),
  /** What the issuer advises by way of the processor. */
  adviceCode: LaterText,
  /** The processor's failed charge: tells this decline from any other. */
  declinedChargeId: LaterText,
  detail: Schema.String
}) {
  override get message() {
    return `declined (${this.declineCode ?? this.code}): ${this.detail}`
  }
  get isRetryable() {
    return false
  }
  get outcome() {
    return "not_charged" as const
  }
}

/** The bank wants the customer to authenticate, who is not there. */
export class AuthenticationRequired extends Schema.TaggedError<AuthenticationRequired>(id("AuthenticationRequired"))("AuthenticationRequired", {
  /** The processor's failed charge, as for a decline. */
  declinedChargeId: LaterText,
  detail: Schema.String
}) {
  override get message() {
    return `authentication required: ${this.detail}`
  }
  get isRetryable() {
    return false
  }
  get outcome() {
    return "not_charged" as const
  }
}

/** The request itself is wrong: a parameter, an unknown customer, a deleted payment method. */
export class InvalidRequest extends Schema.TaggedError<InvalidRequest>(id("InvalidRequest"))("InvalidRequest", {
  param: Schema.NullOr(Schema.String),
  code: Schema.NullOr(Schema.String),
  detail: Schema.String
}) {
  override get message() {
    return `invalid request${this.code === null ? "" : ` (${this.code})`}: ${this.detail}`
  }
  get isRetryable() {
    return false
  }
  get outcome() {
    return "not_charged" as const
  }
}

/** The API key is wrong or lacks the permission. */
export class PermissionDenied extends Schema.TaggedError<PermissionDenied>(id("PermissionDenied"))("PermissionDenied", {
  detail: Schema.String
}) {
  override get message() {
    return `permission denied: ${this.detail}`
  }
  get isRetryable() {
    return false
  }
  get outcome() {
    return "not_charged" as const
  }
}

/** Too many requests: this one was not executed. */
export class RateLimited extends Schema.TaggedError<RateLimited>(id("RateLimited"))("RateLimited", {
  retryAfterMs: Schema.NullOr(Schema.Finite),
  limitReason: Schema.NullOr(Schema.String)
}) {
  override get message() {
    return `rate limited${this.limitReason === null ? "" : ` (${this.limitReason})`}`
  }
  get isRetryable() {
    return true
  }
  get outcome() {
    return "not_charged" as const
  }
}

/** No answer within the deadline. */
export class GatewayTimeout extends Schema.TaggedError<GatewayTimeout>(id("GatewayTimeout"))("GatewayTimeout", {
  operation: Schema.String,
  timeoutMs: Schema.Finite
}) {
  override get message() {
    return `${this.operation} gave no answer in ${this.timeoutMs} ms`
  }
  get isRetryable() {
    return true
  }
  get outcome() {
    return "unknown" as const
  }
}

/** Connection refused, reset or cut, or a 5xx. `replayed` tells that the answer is a stored one: the key will never give another. */
export class GatewayUnavailable extends Schema.TaggedError<GatewayUnavailable>(id("GatewayUnavailable"))("GatewayUnavailable", {
  operation: Schema.String,
  status: Schema.NullOr(Schema.Int),
  replayed: Schema.Boolean,
  detail: Schema.String
}) {
  override get message() {
    return `${this.operation} failed${this.status === null ? "" : ` with ${this.status}`}: ${this.detail}`
  }
  get isRetryable() {
    return true
  }
  get outcome() {
    return "unknown" as const
  }
}

/** 409: a request with this key is under way at the processor. */
export class KeyInUse extends Schema.TaggedError<KeyInUse>(id("KeyInUse"))("KeyInUse", { operation: Schema.String }) {
  override get message() {
    return `${this.operation}: a request with the same idempotency key is in flight`
  }
  get isRetryable() {
    return true
  }
  get outcome() {
    return "unknown" as const
  }
}

/** The key was used with other parameters. */
export class KeyReused extends Schema.TaggedError<KeyReused>(id("KeyReused"))("KeyReused", {
  operation: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `${this.operation}: ${this.detail}`
  }
  get isRetryable() {
    return false
  }
  get outcome() {
    return "unknown" as const
  }
}

/** An answer that cannot be read as what was asked for. */
export class UnexpectedAnswer extends Schema.TaggedError<UnexpectedAnswer>(id("UnexpectedAnswer"))("UnexpectedAnswer", {
  operation: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `${this.operation} gave an answer that cannot be read: ${this.detail}`
  }
  get isRetryable() {
    return true
  }
  get outcome() {
    return "unknown" as const
  }
}

/** Everything the processor can fail with. */
export const ChargeErrorReason = Schema.Union([
  CardDeclined, AuthenticationRequired, InvalidRequest, PermissionDenied, RateLimited,
  GatewayTimeout, GatewayUnavailable, KeyInUse, KeyReused, UnexpectedAnswer
])
export type ChargeErrorReason = typeof ChargeErrorReason.Type

/** The processor's refusal or failure about one charge; `requestId` is the processor's id of the call, for its support. */
export class ChargeError extends Schema.TaggedError<ChargeError>("@purser/core/ChargeError")("ChargeError", {
  reason: ChargeErrorReason,
  chargeKey: Schema.NullOr(ChargeKey),
  requestId: Schema.NullOr(Schema.String)
}) {
  override get message() {
    return this.reason.message
  }
  get isRetryable() {
    return this.reason.isRetryable
  }
  get outcome() {
    return this.reason.outcome
  }
}
