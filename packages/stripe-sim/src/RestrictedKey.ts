/**
 * What a restricted key may do.
 *
 * Defines permissions by the names that Stripe's refusals use: `charge` (with refunds), `payment_intent`, `customer`,
 * `payment_method`, `invoice` (with its items), `event`, `webhook`, `dispute`, `balance`, `accounts_kyc_basic`,
 * `billing_clock`. Refuses whatever is not named.
 */
import { Schema } from "effect"

const Table = Schema.Record(Schema.String, Schema.Literals(["read", "write"]))

/** `write` includes `read`. `connect` holds for requests with a Stripe-Account header, `permissions` for the others. */
export const RestrictedKey = Schema.Struct({
  key: Schema.String,
  permissions: Table,
  connect: Schema.optionalKey(Table)
})
/** See the schema. */
export type RestrictedKey = typeof RestrictedKey.Type
