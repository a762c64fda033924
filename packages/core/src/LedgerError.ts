/**
 * What the ledger refuses or fails with. Nothing of these says that money moved: a call to Stripe is only ever made
 * after the ledger has answered.
 */
import { Schema } from "effect"
import { ChargeKey } from "./ChargeKey.ts"
import { wholeSeconds } from "./internal/wholeSeconds.ts"

const id = (name: string) => `@purser/core/LedgerError/${name}`

/** The frozen terms of a charge, or the terms that a later request gives. */
export const ConflictTerms = Schema.Struct({
  amountMinor: Schema.Int,
  currency: Schema.String,
  stripeCustomerId: Schema.String,
  paymentMethod: Schema.NullOr(Schema.String)
})

/** The database did not answer, or answered with an error of its own. */
export class LedgerUnavailable extends Schema.TaggedError<LedgerUnavailable>(id("LedgerUnavailable"))("LedgerUnavailable", {
  operation: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `the ledger is unavailable for ${this.operation}: ${this.detail}`
  }
  get isRetryable() {
    return true
  }
}

/** The same identity came back with other terms. It is never charged and never silently skipped. */
export class ChargeConflict extends Schema.TaggedError<ChargeConflict>(id("ChargeConflict"))("ChargeConflict", {
  expected: ConflictTerms,
  actual: ConflictTerms
}) {
  override get message() {
    const text = (t: typeof ConflictTerms.Type) =>
      `${t.amountMinor} ${t.currency} of ${t.stripeCustomerId} with ${t.paymentMethod ?? "the default payment method"}`
    return `the ledger holds ${text(this.expected)}, the request says ${text(this.actual)}`
  }
  get isRetryable() {
    return false
  }
}

/** Another worker holds the lease; ask again after it. */
export class ChargeInProgress extends Schema.TaggedError<ChargeInProgress>(id("ChargeInProgress"))("ChargeInProgress", {
  leaseLeftMs: Schema.Finite
}) {
  override get message() {
    return `another worker holds this charge for at most ${wholeSeconds(this.leaseLeftMs)} more`
  }
  get isRetryable() {
    return true
  }
}

/** This worker's lease ran out and another one took the charge over. */
export class LeaseLost extends Schema.TaggedError<LeaseLost>(id("LeaseLost"))("LeaseLost", { operation: Schema.String }) {
  override get message() {
    return `the lease was lost before ${this.operation}`
  }
  get isRetryable() {
    return true
  }
}

/** Stripe's object does not match the row: nothing is confirmed until a person has looked. */
export class ChargeQuarantined extends Schema.TaggedError<ChargeQuarantined>(id("ChargeQuarantined"))("ChargeQuarantined", {
  detail: Schema.String
}) {
  override get message() {
    return `quarantined: ${this.detail}`
  }
  get isRetryable() {
    return false
  }
}

/** The request names a revision that no explicit act has opened. It is never charged. */
export class RevisionNotOpened extends Schema.TaggedError<RevisionNotOpened>(id("RevisionNotOpened"))("RevisionNotOpened", {}) {
  override get message() {
    return "no such revision was opened: a charge is billed anew by an explicit act alone"
  }
  get isRetryable() {
    return false
  }
}

/** Everything the ledger can fail with. */
export const LedgerErrorReason = Schema.Union([
  LedgerUnavailable, ChargeConflict, ChargeInProgress, LeaseLost, ChargeQuarantined, RevisionNotOpened
])
export type LedgerErrorReason = typeof LedgerErrorReason.Type

/** The ledger's refusal or failure about one charge; `chargeKey` is null for calls about many. */
export class LedgerError extends Schema.TaggedError<LedgerError>("@purser/core/LedgerError")("LedgerError", {
  reason: LedgerErrorReason,
  chargeKey: Schema.NullOr(ChargeKey)
}) {
  override get message() {
    return this.reason.message
  }
  get isRetryable() {
    return this.reason.isRetryable
  }
  /** `not_charged` where this request was stopped before Stripe; else another worker, or an earlier one, may have charged. */
  get outcome(): "not_charged" | "unknown" {
    return this.reason._tag === "ChargeConflict" || this.reason._tag === "RevisionNotOpened" ? "not_charged" : "unknown"
  }
}
