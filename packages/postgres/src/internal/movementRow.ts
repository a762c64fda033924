/** From rows of movements to values; every row is decoded by a schema before anything believes it. */
import { ChargeKey, type Movement } from "@purser/core"
import { Schema } from "effect"

const NullText = Schema.NullOr(Schema.String)

/** A refund or a dispute that was seen at the processor. */
export const MovementRow = Schema.Struct({
  id: Schema.String,
  kind: Schema.Literals(["refund", "dispute"]),
  charge_key: ChargeKey,
  payment_intent_id: NullText,
  charge_id: NullText,
  amount_minor: Schema.BigInt,
  currency: Schema.String,
  status: Schema.String,
  reason: NullText,
  created_ms: Schema.Finite
})

/** The movement of a row. */
export const movementOf = (row: typeof MovementRow.Type): Movement => ({
  id: row.id,
  kind: row.kind,
  chargeKey: row.charge_key,
  paymentIntentId: row.payment_intent_id,
  chargeId: row.charge_id,
  amountMinor: Number(row.amount_minor),
  currency: row.currency,
  status: row.status,
  reason: row.reason,
  createdMs: row.created_ms
})
