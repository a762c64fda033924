/** Why a refund is not made, or is not decided yet. None of these says that money moved. */
import { Schema } from "effect"
import { ChargeKey } from "./ChargeKey.ts"
import { wholeSeconds } from "./internal/wholeSeconds.ts"

const id = (name: string) => `@purser/core/RefundError/${name}`

/** There is no payment to give back: the ledger has no such charge, or it is not paid. */
export class ChargeNotPaid extends Schema.TaggedError<ChargeNotPaid>(id("ChargeNotPaid"))("ChargeNotPaid", {
  /** Null when the ledger has no such charge. */
  state: Schema.NullOr(Schema.String)
}) {
  override get message() {
    return this.state === null ? "the ledger holds no such charge" : `the charge is ${this.state}: only a paid one can be refunded`
  }
  get isRetryable() {
    return false
  }
  get outcome() {
    return "not_charged" as const
  }
}

/** More than is left of what was received. Figures in minor units of the charge's currency. */
export class RefundTooLarge extends Schema.TaggedError<RefundTooLarge>(id("RefundTooLarge"))("RefundTooLarge", {
  requestedMinor: Schema.Int,
  leftMinor: Schema.Int,
  receivedMinor: Schema.Int,
  /** What others gave back, as far as the ledger knows. */
  elsewhereMinor: Schema.Int
}) {
  override get message() {
    const elsewhere = this.elsewhereMinor === 0 ? "" : ` (${this.elsewhereMinor} were given back elsewhere)`
    return `${this.requestedMinor} is more than is left to refund: ${this.leftMinor} of ${this.receivedMinor}${elsewhere}`
  }
  get isRetryable() {
    return false
  }
  get outcome() {
    return "not_charged" as const
  }
}

/** The same refund came back with another amount. It is never made twice and never changed. */
export class RefundConflict extends Schema.TaggedError<RefundConflict>(id("RefundConflict"))("RefundConflict", {
  refundId: Schema.String,
  expectedMinor: Schema.Int,
  actualMinor: Schema.Int
}) {
  override get message() {
    return `refund "${this.refundId}" of this charge is over ${this.expectedMinor}, the request says ${this.actualMinor}: another refund needs another id`
  }
  get isRetryable() {
    return false
  }
  get outcome() {
    return "not_charged" as const
  }
}

/** Another process is making this refund; ask again after its lease. */
export class RefundInProgress extends Schema.TaggedError<RefundInProgress>(id("RefundInProgress"))("RefundInProgress", {
  leaseLeftMs: Schema.Finite
}) {
  override get message() {
    return `another process holds this refund for at most ${wholeSeconds(this.leaseLeftMs)} more`
  }
  get isRetryable() {
    return true
  }
  get outcome() {
    return "unknown" as const
  }
}

/** This process's lease on the refund ran out and another one took it over. */
export class RefundLeaseLost extends Schema.TaggedError<RefundLeaseLost>(id("RefundLeaseLost"))("RefundLeaseLost", {
  operation: Schema.String
}) {
  override get message() {
    return `the lease of the refund was lost before ${this.operation}`
  }
  get isRetryable() {
    return true
  }
  get outcome() {
    return "unknown" as const
  }
}

/** Everything that a refund can be stopped by, beside the store and the processor. */
export const RefundErrorReason = Schema.Union([ChargeNotPaid, RefundTooLarge, RefundConflict, RefundInProgress, RefundLeaseLost])
export type RefundErrorReason = typeof RefundErrorReason.Type

/** A refund that was not made, or is not decided. */
export class RefundError extends Schema.TaggedError<RefundError>("@purser/core/RefundError")("RefundError", {
  reason: RefundErrorReason,
  chargeKey: ChargeKey
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
