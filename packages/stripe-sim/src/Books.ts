/**
 * The simulator's own account of who was charged what: the judge of every test.
 *
 * Defines one entry per identity (customer, billing period, item, namespace) and currency, read from the metadata
 * that the charger wrote. Refuses to take anyone else's word: it counts payments that succeeded here.
 */
import { Schema } from "effect"

/**
 * One identity's payments. `customer`, `billingPeriod` and `item` come from metadata `customer_id`,
 * `billing_period` and `item`; without them the Stripe customer's id and "". `payments` counts succeeded payments,
 * `amountMinor` is their sum. What went back is there only where something did: `refunds` and `refundedMinor` (failed
 * refunds do not count), `disputes` and `disputedMinor` (inquiries and disputes that were won do not count). `account` is
 * there for connected accounts, `namespace`
 * only when it is not the default one.
 */
export const BookEntry = Schema.Struct({
  customer: Schema.String,
  billingPeriod: Schema.String,
  item: Schema.String,
  payments: Schema.Int,
  amountMinor: Schema.Int,
  currency: Schema.String,
  refunds: Schema.optionalKey(Schema.Int),
  refundedMinor: Schema.optionalKey(Schema.Int),
  disputes: Schema.optionalKey(Schema.Int),
  disputedMinor: Schema.optionalKey(Schema.Int),
  account: Schema.optionalKey(Schema.String),
  namespace: Schema.optionalKey(Schema.String)
})
/** See the schema. */
export type BookEntry = typeof BookEntry.Type

/** What the customer has paid in the end, in minor units: payments less refunds and lost or open disputes. */
export const netMinor = (entry: BookEntry): number =>
  entry.amountMinor - (entry.refundedMinor ?? 0) - (entry.disputedMinor ?? 0)

/** The namespace that is not written into an entry. */
export const defaultNamespace = "zmq-billing"
