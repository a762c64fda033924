/** From rows of refunds to values; every row is decoded by a schema before anything believes it. */
import {
  AlreadyRefunded, ChargeKey, type ClaimedRefund, type RefundElsewhereTotal, type RefundEvent, RefundFailed, RefundKey, type RefundOutcome, RefundPending, RefundReason,
  type RefundRecord, RefundRefused, type RefundTotal, Refunded
} from "@purser/core"
import { Schema } from "effect"
import { StateColumn } from "./chargeRow.ts"

const NullText = Schema.NullOr(Schema.String)
const state = Schema.Literals(["requested", "pending", "succeeded", "failed", "already_refunded", "refused"])

const refundFields = {
  refund_key: RefundKey,
  charge_key: ChargeKey,
  refund_id: Schema.String,
  currency: Schema.String,
  amount_minor: Schema.BigInt,
  reason: Schema.NullOr(RefundReason),
  attempt: Schema.Int,
  processor_refund_id: NullText
}
/** Of the charge: it may name the account that the money came from. */
const ofCharge = { namespace: Schema.String }
const outcomeFields = { payment_intent_id: Schema.String, state, actor: Schema.String, note: Schema.String, outcome_code: NullText, outcome_detail: NullText }

/** The charge under the lock of a claim. */
export const LockedCharge = Schema.Struct({
  state: StateColumn,
  received_minor: Schema.NullOr(Schema.BigInt),
  outcome_payment_intent_id: NullText,
  charge_id: NullText,
  currency: Schema.String,
  billing_period: Schema.String
})
/** What is bound by the refunds of a charge. */
export const HeldRow = Schema.Struct({ held_minor: Schema.BigInt })

/** A refund as it is stored. */
export const StoredRow = Schema.Struct({ ...refundFields, ...outcomeFields, lease_left_ms: Schema.Finite })
/** A refund under the lock of a settlement. */
export const LockedRefund = Schema.Struct({ ...StoredRow.fields, lease_epoch: Schema.BigInt })
/** A refund as people see it. */
export const RefundRow = Schema.Struct({ ...refundFields, ...ofCharge, ...outcomeFields, requested_at_ms: Schema.Finite })

type Outcome = Schema.Struct<typeof refundFields & typeof outcomeFields>["Type"]

/** The recorded outcome, or null while there is none. */
export const refundOutcomeOf = (row: Outcome): RefundOutcome | null => {
  const common = { refundKey: row.refund_key, chargeKey: row.charge_key, amountMinor: Number(row.amount_minor), alreadySettled: true }
  const processorRefundId = row.processor_refund_id ?? ""
  const detail = row.outcome_detail ?? ""
  switch (row.state) {
    case "requested":
      return null
    case "succeeded":
      return new Refunded({ ...common, processorRefundId })
    case "pending":
      return new RefundPending({ ...common, processorRefundId, detail })
    case "failed":
      return new RefundFailed({ ...common, processorRefundId, detail })
    case "already_refunded":
      return new AlreadyRefunded({ ...common, detail })
    case "refused":
      return new RefundRefused({ ...common, code: row.outcome_code ?? "", detail })
  }
}

/** A refund that was taken. */
export const ClaimedRow = Schema.Struct({
  ...refundFields,
  ...ofCharge,
  claimed_state: Schema.Literals(["requested", "pending"]),
  payment_intent_id: Schema.String,
  charge_id: NullText,
  lease_epoch: Schema.BigInt,
  lease_left_ms: Schema.Finite
})

/** The refund in the hands of `worker`. Only the first claim of all has epoch 1. */
export const claimedRefundOf = (row: typeof ClaimedRow.Type, worker: string): ClaimedRefund => ({
  lease: { refundKey: row.refund_key, worker, epoch: Number(row.lease_epoch) },
  leaseLeftMs: row.lease_left_ms,
  chargeKey: row.charge_key,
  namespace: row.namespace,
  refundId: row.refund_id,
  state: row.claimed_state,
  amountMinor: Number(row.amount_minor),
  currency: row.currency,
  reason: row.reason,
  paymentIntentId: row.payment_intent_id,
  chargeId: row.charge_id,
  processorRefundId: row.processor_refund_id,
  attempt: row.attempt,
  resumed: row.lease_epoch > 1n
})

/** One refund as people see it. */
export const refundRecordOf = (row: typeof RefundRow.Type): RefundRecord => ({
  refundKey: row.refund_key,
  chargeKey: row.charge_key,
  namespace: row.namespace,
  refundId: row.refund_id,
  state: row.state,
  amountMinor: Number(row.amount_minor),
  currency: row.currency,
  reason: row.reason,
  actor: row.actor,
  note: row.note,
  attempt: row.attempt,
  paymentIntentId: row.payment_intent_id,
  processorRefundId: row.processor_refund_id,
  outcome: refundOutcomeOf(row),
  requestedAtMs: row.requested_at_ms
})

/** One line of the trail. */
export const RefundEventRow = Schema.Struct({
  refund_key: RefundKey,
  seq: Schema.Int,
  at_ms: Schema.Finite,
  from_state: Schema.NullOr(state),
  to_state: state,
  worker: NullText,
  attempt: Schema.Int,
  detail: NullText
})

/** The event of a line. */
export const refundEventOf = (row: typeof RefundEventRow.Type): RefundEvent => ({
  refundKey: row.refund_key,
  sequence: row.seq,
  atMs: row.at_ms,
  from: row.from_state,
  to: row.to_state,
  worker: row.worker,
  attempt: row.attempt,
  detail: row.detail
})

/** Counts and sums of one state. */
export const RefundTotalRow = Schema.Struct({
  billing_period: Schema.String,
  currency: Schema.String,
  state,
  refunds: Schema.BigInt,
  amount_minor: Schema.String
})

/** The total of a row. */
export const refundTotalOf = (row: typeof RefundTotalRow.Type): RefundTotal => ({
  billingPeriod: row.billing_period,
  currency: row.currency,
  state: row.state,
  refunds: Number(row.refunds),
  amountMinor: BigInt(row.amount_minor)
})

/** Counts and sums of what others gave back. */
export const RefundElsewhereRow = Schema.Struct({
  billing_period: Schema.String,
  currency: Schema.String,
  refunds: Schema.BigInt,
  amount_minor: Schema.String
})

/** The total of a row. */
export const refundElsewhereOf = (row: typeof RefundElsewhereRow.Type): RefundElsewhereTotal => ({
  billingPeriod: row.billing_period,
  currency: row.currency,
  refunds: Number(row.refunds),
  amountMinor: BigInt(row.amount_minor)
})
