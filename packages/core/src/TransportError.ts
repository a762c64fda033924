/**
 * What goes wrong between a client and a worker. A transport never knows whether the charge was made, so every reason
 * that can follow a send says `outcome: "unknown"`; submitting the same request again is always safe.
 */
import { Schema } from "effect"

const id = (name: string) => `@purser/core/TransportError/${name}`

/** No reply within the deadline of one attempt. */
export class RequestTimeout extends Schema.TaggedError<RequestTimeout>(id("RequestTimeout"))("RequestTimeout", {
  endpoint: Schema.String,
  attempt: Schema.Int,
  timeoutMs: Schema.Finite
}) {
  override get message() {
    return `${this.endpoint} gave no reply in ${this.timeoutMs} ms (attempt ${this.attempt})`
  }
  get isRetryable() {
    return true
  }
  get outcome() {
    return "unknown" as const
  }
}

/** Every attempt of a request timed out. */
export class RetriesExhausted extends Schema.TaggedError<RetriesExhausted>(id("RetriesExhausted"))("RetriesExhausted", {
  endpoint: Schema.String,
  attempts: Schema.Int
}) {
  override get message() {
    return `${this.endpoint} gave no reply to ${this.attempts} attempts`
  }
  get isRetryable() {
    return true
  }
  get outcome() {
    return "unknown" as const
  }
}

/** The window of unacknowledged requests is full; nothing was sent. */
export class Backpressure extends Schema.TaggedError<Backpressure>(id("Backpressure"))("Backpressure", {
  endpoint: Schema.String,
  window: Schema.Int
}) {
  override get message() {
    return `${this.endpoint} has ${this.window} requests in flight, which is its window`
  }
  get isRetryable() {
    return true
  }
  get outcome() {
    return "not_charged" as const
  }
}

/** No peer takes the request; nothing was sent. */
export class PeerUnreachable extends Schema.TaggedError<PeerUnreachable>(id("PeerUnreachable"))("PeerUnreachable", {
  endpoint: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `${this.endpoint} cannot be reached: ${this.detail}`
  }
  get isRetryable() {
    return true
  }
  get outcome() {
    return "not_charged" as const
  }
}

/** The peer went away while the request was with it. */
export class PeerLost extends Schema.TaggedError<PeerLost>(id("PeerLost"))("PeerLost", { endpoint: Schema.String }) {
  override get message() {
    return `${this.endpoint} went away with the request`
  }
  get isRetryable() {
    return true
  }
  get outcome() {
    return "unknown" as const
  }
}

/** Bytes that are not a message of this protocol; the same bytes will be refused again. */
export class MalformedMessage extends Schema.TaggedError<MalformedMessage>(id("MalformedMessage"))("MalformedMessage", {
  detail: Schema.String,
  field: Schema.NullOr(Schema.String)
}) {
  override get message() {
    return this.field === null ? `malformed message: ${this.detail}` : `malformed message: ${this.field}: ${this.detail}`
  }
  get isRetryable() {
    return false
  }
  get outcome() {
    return "not_charged" as const
  }
}

/** The peer's key or principal is not allowed here. */
export class Unauthorized extends Schema.TaggedError<Unauthorized>(id("Unauthorized"))("Unauthorized", { detail: Schema.String }) {
  override get message() {
    return `not allowed: ${this.detail}`
  }
  get isRetryable() {
    return false
  }
  get outcome() {
    return "not_charged" as const
  }
}

/** The transport was closed, or could not be opened. */
export class Closed extends Schema.TaggedError<Closed>(id("Closed"))("Closed", { endpoint: Schema.String, detail: Schema.String }) {
  override get message() {
    return `${this.endpoint === "" ? "the transport" : this.endpoint} cannot be used: ${this.detail}`
  }
  get isRetryable() {
    return false
  }
  get outcome() {
    return "unknown" as const
  }
}

/** Two peers claim the same routing id. */
export class IdentityClash extends Schema.TaggedError<IdentityClash>(id("IdentityClash"))("IdentityClash", { endpoint: Schema.String }) {
  override get message() {
    return `another peer of ${this.endpoint} has the same identity`
  }
  get isRetryable() {
    return false
  }
  get outcome() {
    return "not_charged" as const
  }
}

/** Everything a transport can fail with. */
export const TransportErrorReason = Schema.Union([
  RequestTimeout, RetriesExhausted, Backpressure, PeerUnreachable, PeerLost, MalformedMessage, Unauthorized, Closed, IdentityClash
])
export type TransportErrorReason = typeof TransportErrorReason.Type

/** A request or its reply did not get through; `chargeKey` is null where the message has none. */
export class TransportError extends Schema.TaggedError<TransportError>("@purser/core/TransportError")("TransportError", {
  reason: TransportErrorReason,
  chargeKey: Schema.NullOr(Schema.String)
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
