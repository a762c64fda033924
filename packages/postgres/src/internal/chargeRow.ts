/**
 * From rows to values. Every row is decoded by a schema before anything believes it; `bigint` columns arrive as
 * `bigint`, `numeric` sums as text.
 */
import {
  Canceled, type ChargeEvent, ChargeKey, type ChargeOutcome, type ChargeRecord, type ChargeRequest, type ChargeState, type ClaimedCharge, Declined,
  Processing, readRequest, Rejected, RequiresAction, RunMark, type StateTotal, Succeeded
} from "@purser/core"
import { Effect, Schema } from "effect"

/** Money as the rest of the code has it; the column's check and `AmountMinor` keep it far below 2^53. */
const Minor = Schema.BigInt
const NullText = Schema.NullOr(Schema.String)

const state = Schema.Literals(["planned", "claimed", "attached", "processing", "requires_action", "succeeded", "declined", "rejected", "canceled"])

type Rows = Schema.Top & { readonly DecodingServices: never }
type DecodeRows<S extends Rows> = (rows: unknown) => Effect.Effect<ReadonlyArray<S["Type"]>, Schema.SchemaError>

// A decoder is compiled at its first use, which takes longer than most statements.
const decoders = new WeakMap<Rows, DecodeRows<Rows>>()

/** Decodes all rows of an answer. The same schema has the same decoder. */
export const decodeRows = <S extends Rows>(schema: S): DecodeRows<S> => {
  const made = decoders.get(schema) as DecodeRows<S> | undefined ?? Schema.decodeUnknownEffect(Schema.Array(schema))
  decoders.set(schema, made)
  return made
}

/** A request's columns. */
export const requestFields = {
  charge_key: ChargeKey,
  namespace: Schema.String,
  customer_id: Schema.String,
  billing_period: Schema.String,
  item: NullText,
  amount_minor: Minor,
  currency: Schema.String,
  stripe_customer_id: Schema.String,
  allow_future: Schema.Boolean,
  revision: Schema.Int
}
type RequestColumns = Schema.Struct<typeof requestFields>["Type"]

/** The request that a row was made from; the sender's own key is not kept. */
export const requestOf = (row: RequestColumns, paymentMethod: string | null): Effect.Effect<ChargeRequest, Schema.SchemaError> =>
  Effect.fromResult(readRequest({
    namespace: row.namespace,
    customerId: row.customer_id,
    billingPeriod: row.billing_period,
    ...(row.item === null ? {} : { item: row.item }),
    ...(row.revision === 0 ? {} : { revision: row.revision }),
    amountMinor: Number(row.amount_minor),
    currency: row.currency,
    stripeCustomerId: row.stripe_customer_id,
    ...(paymentMethod === null ? {} : { paymentMethod }),
    ...(row.allow_future ? { allowFuture: true } : {})
  }))

/** An outcome's columns. */
export const outcomeFields = {
  outcome_payment_intent_id: NullText,
  charge_id: NullText,
  received_minor: Schema.NullOr(Minor),
  outcome_code: NullText,
  outcome_decline_code: NullText,
  outcome_detail: NullText,
  outcome_advice_code: NullText,
  declined_charge_id: NullText
}
type OutcomeColumns = Schema.Struct<typeof outcomeFields>["Type"]

/** The recorded outcome, or null while there is none. */
export const outcomeOf = (chargeKey: ChargeKey, at: ChargeState | null, row: OutcomeColumns): ChargeOutcome | null => {
  const common = { chargeKey, alreadySettled: true }
  const id = row.outcome_payment_intent_id
  const detail = row.outcome_detail ?? ""
  switch (at) {
    case "succeeded":
      return new Succeeded({ ...common, paymentIntentId: id ?? "", chargeId: row.charge_id, amountReceivedMinor: Number(row.received_minor ?? 0n) })
    case "processing":
      return new Processing({ ...common, paymentIntentId: id ?? "" })
    case "requires_action":
      return new RequiresAction({ ...common, paymentIntentId: id ?? "", declinedChargeId: row.declined_charge_id, detail })
    case "declined":
      return new Declined({ ...common, paymentIntentId: id, code: row.outcome_code ?? "", declineCode: row.outcome_decline_code, adviceCode: row.outcome_advice_code, declinedChargeId: row.declined_charge_id, detail })
    case "rejected":
      return new Rejected({ ...common, code: row.outcome_code ?? "", detail })
    case "canceled":
      return new Canceled({ ...common, paymentIntentId: id, detail })
    default:
      return null
  }
}

/** The outcome in columns: state, intent, charge, received, code, decline code, detail. */
export const outcomeColumns = (outcome: ChargeOutcome) => {
  const none = { intent: null, charge: null, received: null, code: null, declineCode: null, detail: null, adviceCode: null, declinedCharge: null }
  switch (outcome._tag) {
    case "Succeeded":
      return { ...none, state: "succeeded", intent: outcome.paymentIntentId, charge: outcome.chargeId, received: outcome.amountReceivedMinor }
    case "Processing":
      return { ...none, state: "processing", intent: outcome.paymentIntentId }
    case "RequiresAction":
      return { ...none, state: "requires_action", intent: outcome.paymentIntentId, detail: outcome.detail, declinedCharge: outcome.declinedChargeId }
    case "Declined":
      return {
        ...none, state: "declined", intent: outcome.paymentIntentId, code: outcome.code, declineCode: outcome.declineCode, detail: outcome.detail,
        adviceCode: outcome.adviceCode, declinedCharge: outcome.declinedChargeId
      }
    case "Rejected":
      return { ...none, state: "rejected", code: outcome.code, detail: outcome.detail }
    case "Canceled":
      return { ...none, state: "canceled", intent: outcome.paymentIntentId, detail: outcome.detail }
  }
}

/** What a take-over answers beside the request. */
export const claimedFields = {
  claimed_state: Schema.Literals(["claimed", "attached", "processing"]),
  lease_epoch: Schema.BigInt,
  generation: Schema.Int,
  attempt: Schema.Int,
  payment_intent_id: NullText,
  payment_method: NullText,
  chosen_method: NullText,
  last_declined_id: NullText,
  first_claimed_at_ms: Schema.Finite,
  lease_left_ms: Schema.Finite,
  since_first_claim_ms: Schema.Finite
}
type ClaimedColumns = Schema.Struct<typeof claimedFields>["Type"]

/** A charge in the hands of `worker`. Only the first claim of all has epoch 1. */
export const claimedOf = (row: ClaimedColumns, request: ChargeRequest, chargeKey: ChargeKey, worker: string): ClaimedCharge => ({
  lease: { chargeKey, worker, epoch: Number(row.lease_epoch) },
  leaseLeftMs: row.lease_left_ms,
  request,
  state: row.claimed_state,
  resumed: row.lease_epoch > 1n,
  generation: row.generation,
  attempt: row.attempt,
  paymentIntentId: row.payment_intent_id,
  paymentMethod: row.payment_method,
  chosenMethod: row.chosen_method,
  declinedChargeId: row.last_declined_id,
  sinceFirstClaimMs: row.since_first_claim_ms,
  firstClaimedAtMs: row.first_claimed_at_ms
})

/** A row that was taken over. */
export const TakenRow = Schema.Struct({ ...requestFields, ...claimedFields, requested_method: NullText, run_id: NullText })

/** A row that was taken over, in the hands of `worker`. */
export const takenOf = (row: typeof TakenRow.Type, worker: string): Effect.Effect<ClaimedCharge, Schema.SchemaError> =>
  Effect.map(requestOf(row, row.requested_method), (request) =>
    claimedOf(row, row.run_id === null ? request : RunMark.on(request, row.run_id), row.charge_key, worker))

/** The time of an event. */
export const NewestRow = Schema.Struct({ at_ms: Schema.Finite })
/** A namespace. */
export const NamespaceRow = Schema.Struct({ namespace: Schema.String })
/** A whole row. */
export const RecordRow = Schema.Struct({
  ...requestFields,
  ...outcomeFields,
  payment_method: NullText,
  state,
  attempt: Schema.Int,
  generation: Schema.Int,
  payment_intent_id: NullText,
  quarantine: NullText,
  chosen_payment_method: NullText,
  revises: Schema.NullOr(ChargeKey),
  next_attempt_at_ms: Schema.NullOr(Schema.Finite)
})

/** One row as people see it. */
export const recordOf = (row: typeof RecordRow.Type): Effect.Effect<ChargeRecord, Schema.SchemaError> =>
  Effect.map(requestOf(row, row.payment_method), (request) => ({
    chargeKey: row.charge_key,
    request,
    state: row.state,
    attempt: row.attempt,
    generation: row.generation,
    paymentIntentId: row.payment_intent_id,
    outcome: outcomeOf(row.charge_key, row.state, row),
    quarantine: row.quarantine,
    nextAttemptAtMs: row.next_attempt_at_ms,
    chosenMethod: row.chosen_payment_method,
    revises: row.revises
  }))

/** One line of the audit trail. */
export const EventRow = Schema.Struct({
  charge_key: ChargeKey,
  seq: Schema.Int,
  at_ms: Schema.Finite,
  from_state: Schema.NullOr(state),
  to_state: state,
  worker: NullText,
  attempt: Schema.Int,
  detail: NullText,
  principal: NullText
})

/** The event of a line. */
export const eventOf = (row: typeof EventRow.Type): ChargeEvent => ({
  chargeKey: row.charge_key,
  sequence: row.seq,
  atMs: row.at_ms,
  from: row.from_state,
  to: row.to_state,
  worker: row.worker,
  attempt: row.attempt,
  detail: row.detail,
  principal: row.principal
})

/** Counts and sums of one state. */
export const TotalRow = Schema.Struct({
  billing_period: Schema.String,
  currency: Schema.String,
  state,
  charges: Schema.BigInt,
  amount_minor: Schema.String,
  received_minor: Schema.String,
  quarantined: Schema.BigInt
})

/** The total of a row. */
export const totalOf = (row: typeof TotalRow.Type): StateTotal => ({
  billingPeriod: row.billing_period,
  currency: row.currency,
  state: row.state,
  charges: Number(row.charges),
  amountMinor: BigInt(row.amount_minor),
  receivedMinor: BigInt(row.received_minor),
  quarantined: Number(row.quarantined)
})

/** States as a schema, for other statements. */
export const StateColumn = state
