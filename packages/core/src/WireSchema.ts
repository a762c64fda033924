/**
 * The shapes of the wire as schemas: what `Wire` reads and writes, and what the JSON Schemas of the wire's page are made of. What a
 * text means (periods, currencies, keys) is not said here.
 */
import { Schema } from "effect"
import { ChargeOutcome } from "./ChargeOutcome.ts"
import { SubmitError } from "./SubmitError.ts"

/**
 * Requests or answers of a joined frame at the most. Clients of ours join up to 128; without a bound one frame of many small items would be work
 * for a minute.
 */
export const frameItemsMax = 1024

const Text = Schema.optionalKey(Schema.NullOr(Schema.String))

/** A charge in the joined form. */
export const JoinedBody = Schema.Struct({
  namespace: Schema.optionalKey(Schema.String),
  customer_id: Schema.String,
  billing_period: Schema.String,
  item: Text,
  revision: Schema.optionalKey(Schema.NullOr(Schema.Int)),
  amount_minor: Schema.Int,
  currency: Schema.String,
  stripe_customer_id: Schema.String,
  payment_method: Text,
  sender_key: Text,
  allow_future: Schema.optionalKey(Schema.Boolean)
})

/** A charge in the plain form. */
export const PlainBody = Schema.Struct({
  customer_id: Schema.String,
  billing_period: Schema.String,
  amount_cents: Schema.Int,
  stripe_customer_id: Schema.String,
  namespace: Text,
  idempotency_key: Text,
  currency: Text,
  payment_method: Text,
  item: Text,
  revision: Schema.optionalKey(Schema.NullOr(Schema.Int))
})

/** A sender's name for a request, or for itself. */
export const WireId = Schema.String.pipe(Schema.check(Schema.isNonEmpty(), Schema.isMaxLength(255)))

/** What is around a body of the joined form. */
export const RequestEnvelope = Schema.Struct({ id: WireId, deadline: Schema.Finite.pipe(Schema.check(Schema.isGreaterThan(0))), body: Schema.Unknown })

/** What an item of an answer holds: a settled fact, or an error. */
export const ReplyBody = Schema.Union([Schema.Struct({ outcome: ChargeOutcome }), Schema.Struct({ error: SubmitError })])

const Traceparent = Schema.optionalKey(Schema.String)
const RunId = Schema.optionalKey(Schema.String)
const Echoed = Schema.Union([Schema.String, Schema.Finite, Schema.Boolean])
const PlainFailure = Schema.Struct({
  type: Schema.String,
  reason: Schema.String,
  decline_code: Text,
  message: Schema.String,
  retryable: Schema.Boolean,
  outcome: Schema.Literals(["not_charged", "unknown"])
})
const paid = {
  charge_id: Schema.String,
  payment_intent_id: Schema.String,
  amount_received: Schema.Int,
  charge_key: Schema.String,
  ack_seq: Schema.optionalKey(Echoed)
}

/** Whole messages: what a client in another language writes and reads. */
export const WireSchema = {
  "joined-request": Schema.Struct({
    v: Schema.Literal(1),
    client: WireId,
    items: Schema.Array(Schema.Struct({ ...RequestEnvelope.fields, traceparent: Traceparent, run_id: RunId, body: JoinedBody })).pipe(Schema.check(Schema.isMaxLength(frameItemsMax)))
  }),
  "joined-reply": Schema.Struct({ v: Schema.Literal(1), items: Schema.Array(Schema.Struct({ id: Schema.String, body: ReplyBody })).pipe(Schema.check(Schema.isMaxLength(frameItemsMax))) }),
  "plain-request": Schema.Struct({ ...PlainBody.fields, traceparent: Traceparent, run_id: RunId, seq: Schema.optionalKey(Echoed) }),
  "plain-reply": Schema.Union([
    Schema.Struct({ status: Schema.Literals(["ok", "already_processed"]), ...paid }),
    Schema.Struct({ status: Schema.Literal("processing"), payment_intent_id: Schema.String, charge_key: Schema.String, ack_seq: paid.ack_seq }),
    Schema.Struct({
      status: Schema.Literal("error"),
      payment_intent_id: Schema.optionalKey(Schema.NullOr(Schema.String)),
      charge_key: Schema.optionalKey(Schema.String),
      error: PlainFailure,
      ack_seq: paid.ack_seq
    })
  ])
} as const
