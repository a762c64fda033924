/**
 * The record of every request that arrived, in order of arrival.
 *
 * Refuses to grow without end: the oldest entries go when the limit is reached.
 */
import { Schema } from "effect"

/**
 * One request. `status` is what was answered, null while it runs or when nothing was sent (reset). `replayed` marks
 * the answer of an earlier request. `paymentsMoved` and `movedMinor` say what succeeded because of this request,
 * also when its answer never arrived. `account` is the Stripe-Account that it named. `faults` lists the kinds that fired.
 */
export const RequestEntry = Schema.Struct({
  seq: Schema.Int,
  atMs: Schema.Finite,
  requestId: Schema.String,
  method: Schema.String,
  path: Schema.String,
  account: Schema.optionalKey(Schema.String),
  idempotencyKey: Schema.NullOr(Schema.String),
  status: Schema.NullOr(Schema.Int),
  replayed: Schema.Boolean,
  paymentsMoved: Schema.Int,
  movedMinor: Schema.Int,
  faults: Schema.Array(Schema.String)
})
/** See the schema. */
export type RequestEntry = typeof RequestEntry.Type
