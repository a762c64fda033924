/** What the API speaks of the comparison of the ledger with the processor, as schemas. */
import { Schema } from "effect"
import { NullText, State } from "./Words.ts"

/** One difference between the ledger and the processor. */
export const Difference = Schema.Struct({
  kind: Schema.String,
  chargeKey: Schema.String,
  customerId: NullText,
  item: NullText,
  ledger: Schema.NullOr(Schema.Struct({ state: State, amountMinor: Schema.Int, currency: Schema.String, paymentIntentId: NullText })),
  objects: Schema.Array(Schema.Struct({ id: Schema.String, status: Schema.String, amountMinor: Schema.Int, currency: Schema.String, createdMs: Schema.Finite })),
  detail: Schema.String,
  repaired: Schema.NullOr(Schema.Literals(["adopted", "settled", "canceled"]))
})
export type Difference = typeof Difference.Type

/** What the last reconciliation of this console found, or is finding. */
export const Reconciliation = Schema.Struct({
  state: Schema.Literals(["running", "done", "failed"]),
  billingPeriod: Schema.String,
  sinceMs: Schema.Finite,
  dryRun: Schema.Boolean,
  actor: Schema.String,
  reason: Schema.String,
  startedAtMs: Schema.Finite,
  differences: Schema.Array(Difference),
  /** How many there are in all; the list is cut. */
  found: Schema.Int,
  report: Schema.NullOr(Schema.Struct({
    listed: Schema.Int, ours: Schema.Int, foreign: Schema.Int, rows: Schema.Int, open: Schema.Int, repaired: Schema.Int, remaining: Schema.Int
  })),
  detail: NullText
})
export type Reconciliation = typeof Reconciliation.Type

/** An object at the processor that belongs to no charge. */
export const UnknownObject = Schema.Struct({
  id: Schema.String,
  reason: Schema.String,
  chargeKey: NullText,
  amountMinor: Schema.NullOr(Schema.Int),
  currency: NullText,
  stripeCustomerId: NullText,
  status: NullText,
  detail: NullText,
  firstSeenMs: Schema.Finite,
  lastSeenMs: Schema.Finite
})

/** Both ways: the last comparison, and the list of objects without a charge. */
export const Reconcile = Schema.Struct({ last: Schema.NullOr(Reconciliation), unknown: Schema.Array(UnknownObject) })
export type Reconcile = typeof Reconcile.Type
