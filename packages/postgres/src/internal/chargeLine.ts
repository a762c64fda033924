/** A charge as a line of a list, from its row. */
import { ChargeKey, type ChargeLine } from "@purser/core"
import { Schema } from "effect"
import { StateColumn } from "./chargeRow.ts"

const NullText = Schema.NullOr(Schema.String)

/** The columns of `lineColumns`. */
export const LineRow = Schema.Struct({
  charge_key: ChargeKey,
  namespace: Schema.String,
  customer_id: Schema.String,
  billing_period: Schema.String,
  item: NullText,
  revision: Schema.Int,
  amount_minor: Schema.BigInt,
  received_minor: Schema.NullOr(Schema.BigInt),
  currency: Schema.String,
  stripe_customer_id: Schema.String,
  state: StateColumn,
  attempt: Schema.Int,
  payment_intent_id: NullText,
  quarantine: NullText,
  detail: NullText,
  updated_at_ms: Schema.Finite
})

/** The line of a row. */
export const lineOf = (row: typeof LineRow.Type): ChargeLine => ({
  chargeKey: row.charge_key,
  namespace: row.namespace,
  customerId: row.customer_id,
  billingPeriod: row.billing_period,
  item: row.item,
  revision: row.revision,
  amountMinor: Number(row.amount_minor),
  receivedMinor: row.received_minor === null ? null : Number(row.received_minor),
  currency: row.currency,
  stripeCustomerId: row.stripe_customer_id,
  state: row.state,
  attempt: row.attempt,
  paymentIntentId: row.payment_intent_id,
  quarantine: row.quarantine,
  detail: row.detail,
  updatedAtMs: row.updated_at_ms
})
