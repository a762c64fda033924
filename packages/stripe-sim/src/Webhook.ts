/**
 * Webhooks as a test orders them: where events go, what goes wrong on the way, and what was sent.
 *
 * Defines them as Schemas, so that they are the same values in a program and over `/_sim/webhooks…`. Refuses chance:
 * a fault is for the deliveries that its match and its count name.
 */
import { Schema } from "effect"

/**
 * An endpoint. `events` lists types (`*` and `charge.*` stand for many); all when left out. `connect` takes the
 * events of connected accounts instead of the account's own. Without a secret one is made.
 */
export const WebhookEndpoint = Schema.Struct({
  url: Schema.String,
  secret: Schema.optionalKey(Schema.String),
  events: Schema.optionalKey(Schema.Array(Schema.String)),
  connect: Schema.optionalKey(Schema.Boolean)
})
/** See the schema. */
export type WebhookEndpoint = typeof WebhookEndpoint.Type

/**
 * What goes wrong with a delivery.
 *
 * - `repeat`: it is delivered `times` more times.
 * - `twin`: a second event object, with an id of its own, tells of the same change.
 * - `late`: it is sent once the virtual clock is `delayMs` further, and signed then.
 * - `reorder`: it is sent after the next `behind` deliveries to this endpoint.
 * - `wrongSignature`: signed with another secret. `tampered`: the body was changed after it was signed.
 * - `timestamp`: signed `offsetMs` in the past (negative) or the future.
 * - `drop`: it is never sent and never tried again.
 */
export const WebhookFaultAction = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("repeat"), times: Schema.Int }),
  Schema.Struct({ kind: Schema.Literal("twin") }),
  Schema.Struct({ kind: Schema.Literal("late"), delayMs: Schema.Finite }),
  Schema.Struct({ kind: Schema.Literal("reorder"), behind: Schema.Int }),
  Schema.Struct({ kind: Schema.Literal("wrongSignature") }),
  Schema.Struct({ kind: Schema.Literal("tampered") }),
  Schema.Struct({ kind: Schema.Literal("timestamp"), offsetMs: Schema.Finite }),
  Schema.Struct({ kind: Schema.Literal("drop") })
])
/** See the schema. */
export type WebhookFaultAction = typeof WebhookFaultAction.Type

/** A fault: the events it is for (all when left out), from the `nth` (default 1) for `times` (default 1) of them. */
export const WebhookFault = Schema.Struct({
  match: Schema.optionalKey(Schema.Struct({
    type: Schema.optionalKey(Schema.String),
    url: Schema.optionalKey(Schema.String),
    nth: Schema.optionalKey(Schema.Int),
    times: Schema.optionalKey(Schema.Union([Schema.Int, Schema.Literal("always")]))
  })),
  action: WebhookFaultAction
})
/** See the schema. */
export type WebhookFault = typeof WebhookFault.Type

/**
 * One delivery that was tried. `status` is the receiver's answer, null when there was none. `attempt` counts from 1;
 * what is not answered with 2xx is tried again after 1 minute, half an hour and 3 hours on the virtual clock.
 */
export const WebhookDelivery = Schema.Struct({
  eventId: Schema.String,
  type: Schema.String,
  url: Schema.String,
  atMs: Schema.Finite,
  attempt: Schema.Int,
  status: Schema.NullOr(Schema.Int),
  faults: Schema.Array(Schema.String)
})
/** See the schema. */
export type WebhookDelivery = typeof WebhookDelivery.Type
