/**
 * The contract of what turns a processor's webhook call into an event that is known to come from it.
 *
 * An event is a hint that an object has changed. What it says about the object is not kept: the object itself is read,
 * because events come twice, late and in any order.
 */
import { Context, type Effect, Schema } from "effect"

const id = (name: string) => `@purser/core/WebhookRefused/${name}`

/** What an event speaks of: `customer` when one has changed, perhaps to another card; `other` is nothing that concerns charges. */
export type WebhookSubject = "payment" | "charge" | "refund" | "dispute" | "customer" | "other"

/** One verified event. Times in milliseconds of the Unix epoch, on the processor's clock. */
export interface WebhookEvent {
  readonly id: string
  readonly type: string
  readonly createdMs: number
  /** The connected account that it happened on; null for the account itself. */
  readonly account: string | null
  readonly subject: WebhookSubject
  readonly objectId: string | null
}

/** No signature header, or none of the scheme that is spoken. */
export class SignatureMissing extends Schema.TaggedError<SignatureMissing>(id("SignatureMissing"))("SignatureMissing", {
  detail: Schema.String
}) {
  override get message() {
    return `the call is not signed: ${this.detail}`
  }
  get isRetryable() {
    return false
  }
}

/** No signature of the header belongs to these bytes and one of our secrets. */
export class SignatureWrong extends Schema.TaggedError<SignatureWrong>(id("SignatureWrong"))("SignatureWrong", {}) {
  override get message() {
    return "the signature does not belong to these bytes and a secret of ours"
  }
  get isRetryable() {
    return false
  }
}

/** Signed, but too long ago or too far in the future. */
export class SignatureStale extends Schema.TaggedError<SignatureStale>(id("SignatureStale"))("SignatureStale", {
  differenceMs: Schema.Finite,
  toleranceMs: Schema.Finite
}) {
  override get message() {
    const side = this.differenceMs < 0 ? "in the future" : "ago"
    return `signed ${Math.abs(this.differenceMs)} ms ${side}, and ${this.toleranceMs} ms are tolerated`
  }
  get isRetryable() {
    return false
  }
}

/** Signed as it should be, but no event. */
export class EventMalformed extends Schema.TaggedError<EventMalformed>(id("EventMalformed"))("EventMalformed", {
  detail: Schema.String
}) {
  override get message() {
    return `signed, but no event: ${this.detail}`
  }
  get isRetryable() {
    return false
  }
}

/** A webhook call that is not believed; nothing of it is stored. */
export class WebhookRefused extends Schema.TaggedError<WebhookRefused>("@purser/core/WebhookRefused")("WebhookRefused", {
  reason: Schema.Union([SignatureMissing, SignatureWrong, SignatureStale, EventMalformed])
}) {
  override get message() {
    return this.reason.message
  }
  get isRetryable() {
    return this.reason.isRetryable
  }
}

/** The processor's side of webhooks. */
export class WebhookSource extends Context.Service<WebhookSource, {
  /** The event in these bytes, exactly as they came, if the header proves where they came from. */
  readonly open: (body: Uint8Array, signature: string | undefined) => Effect.Effect<WebhookEvent, WebhookRefused>
}>()("@purser/core/WebhookSource") {}
