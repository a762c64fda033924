/**
 * The parts of Stripe's answers that decide about money, as schemas: what does not fit was not understood.
 *
 * A status that we do not know, or that our way of paying cannot lead to (`requires_capture`), is refused, not guessed.
 */
import type { GatewayPayment } from "@purser/core"
import { Schema } from "effect"

/** Absent or null. */
export const Nullable = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))
/** Stripe sends an id, or the object itself where it was expanded. */
export const Reference = Schema.Union([Schema.NonEmptyString, Schema.Struct({ id: Schema.NonEmptyString })])
type Reference = typeof Reference.Type

/** The id behind a reference. */
export const idOf = (reference: Reference | null | undefined): string | null =>
  reference === null || reference === undefined ? null : typeof reference === "string" ? reference : reference.id

/** A PaymentIntent. */
export const PaymentIntent = Schema.Struct({
  object: Schema.Literal("payment_intent"),
  id: Schema.NonEmptyString,
  status: Schema.Literals([
    "requires_payment_method", "requires_confirmation", "requires_action", "processing", "succeeded", "canceled"
  ]),
  amount: Schema.Int,
  amount_received: Nullable(Schema.Int),
  currency: Schema.NonEmptyString,
  customer: Nullable(Reference),
  latest_charge: Nullable(Reference),
  metadata: Nullable(Schema.Record(Schema.String, Schema.String)),
  last_payment_error: Nullable(Schema.Struct({
    type: Nullable(Schema.String),
    code: Nullable(Schema.String),
    decline_code: Nullable(Schema.String),
    advice_code: Nullable(Schema.String),
    charge: Nullable(Schema.String),
    message: Nullable(Schema.String)
  })),
  payment_method: Nullable(Reference)
})
export type PaymentIntent = typeof PaymentIntent.Type

/** A page of a list, its items only as far as they must be told apart. */
export const Page = Schema.Struct({
  object: Schema.Literal("list"),
  has_more: Schema.Boolean,
  data: Schema.Array(Schema.Struct({ id: Schema.NonEmptyString, metadata: Nullable(Schema.Record(Schema.String, Schema.String)) }))
})

/** The same page with its items whole, in the same order. */
export const WholePage = Schema.Struct({ data: Schema.Array(Schema.Unknown) })

/** A customer, deleted or not. */
export const Customer = Schema.Struct({
  object: Schema.Literal("customer"),
  id: Schema.NonEmptyString,
  deleted: Schema.optionalKey(Schema.Boolean),
  invoice_settings: Nullable(Schema.Struct({ default_payment_method: Nullable(Reference) })),
  default_source: Nullable(Reference)
})

/** Stripe's error body. `type` is what tells it from some proxy's JSON. */
export const ErrorBody = Schema.Struct({
  error: Schema.Struct({
    type: Schema.NonEmptyString,
    code: Nullable(Schema.String),
    decline_code: Nullable(Schema.String),
    advice_code: Nullable(Schema.String),
    charge: Nullable(Schema.String),
    param: Nullable(Schema.String),
    message: Nullable(Schema.String),
    payment_intent: Schema.optionalKey(Schema.Unknown)
  })
})
export type StripeProblem = typeof ErrorBody.Type["error"]

/** The id of what a customer pays with by default. */
export const defaultMethodOf = (customer: typeof Customer.Type, first: "payment_method" | "source"): string | null => {
  const method = idOf(customer.invoice_settings?.default_payment_method)
  const source = idOf(customer.default_source)
  return first === "source" ? source ?? method : method ?? source
}

const statusOf = (intent: PaymentIntent): GatewayPayment["status"] => {
  if (intent.status === "requires_confirmation") return "unconfirmed"
  if (intent.status !== "requires_payment_method") return intent.status
  // A fresh intent and a declined one are in the same state at Stripe; only the second has had an error.
  return intent.last_payment_error === null || intent.last_payment_error === undefined ? "unconfirmed" : "declined"
}

/** A PaymentIntent in the words of the contract. `clean` removes secrets from Stripe's texts. */
export const toPayment = (intent: PaymentIntent, clean: (text: string) => string): GatewayPayment => {
  const generation = intent.metadata?.["generation"]
  const error = intent.last_payment_error
  return {
    id: intent.id,
    status: statusOf(intent),
    amountMinor: intent.amount,
    amountReceivedMinor: intent.amount_received ?? 0,
    currency: intent.currency,
    stripeCustomerId: idOf(intent.customer),
    chargeKey: intent.metadata?.["charge_key"] ?? null,
    generation: generation !== undefined && /^\d{1,9}$/.test(generation) ? Number(generation) : null,
    chargeId: idOf(intent.latest_charge),
    decline: error === null || error === undefined ? null : {
      code: error.code ?? error.type ?? "unknown",
      declineCode: error.decline_code ?? null,
      detail: clean(error.message ?? ""),
      adviceCode: error.advice_code ?? null,
      // The failed charge is the object's latest one, too.
      chargeId: error.charge ?? idOf(intent.latest_charge)
    },
    paymentMethod: idOf(intent.payment_method)
  }
}
