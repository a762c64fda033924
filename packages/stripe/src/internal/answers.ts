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

const intentStatuses: ReadonlySet<unknown> = new Set(PaymentIntent.fields.status.literals)
const isText = (value: unknown): boolean => typeof value === "string" && value !== ""
const isTextOrNone = (value: unknown): boolean => value === null || value === undefined || isText(value)
const isUsualMetadata = (value: unknown): boolean => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false
  return Object.values(value).every((one) => typeof one === "string")
}

/**
 * The usual PaymentIntent, told without the schema, which takes five times as long: nothing expanded, nothing refused. `undefined` for
 * whatever else, which is the schema's to read or to refuse. A property test holds that what is told here is what the schema reads.
 */
export const usualIntent = (json: unknown): PaymentIntent | undefined => {
  if (typeof json !== "object" || json === null) return undefined
  const intent: Partial<Record<keyof PaymentIntent, unknown>> = json
  return intent.object === "payment_intent" && isText(intent.id) && intentStatuses.has(intent.status) && Number.isSafeInteger(intent.amount)
      && Number.isSafeInteger(intent.amount_received) && isText(intent.currency) && isTextOrNone(intent.customer) && isTextOrNone(intent.latest_charge)
      && isTextOrNone(intent.payment_method) && (intent.last_payment_error === null || intent.last_payment_error === undefined) && isUsualMetadata(intent.metadata)
    ? json as PaymentIntent
    : undefined
}

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

const declineOf = (intent: PaymentIntent, clean: (text: string) => string): GatewayPayment["decline"] => {
  const error = intent.last_payment_error
  return error === null || error === undefined ? null : {
    code: error.code ?? error.type ?? "unknown",
    declineCode: error.decline_code ?? null,
    detail: clean(error.message ?? ""),
    adviceCode: error.advice_code ?? null,
    // The failed charge is the object's latest one, too.
    chargeId: error.charge ?? idOf(intent.latest_charge)
  }
}

/** A class, as whatever else lives as long as a charge does: literals that outlive a collection of young objects are made as old ones from then on. */
class IntentPayment implements GatewayPayment {
  readonly id: string
  readonly status: GatewayPayment["status"]
  readonly amountMinor: number
  readonly amountReceivedMinor: number
  readonly currency: string
  readonly stripeCustomerId: string | null
  readonly chargeKey: string | null
  readonly generation: number | null
  readonly chargeId: string | null
  readonly decline: GatewayPayment["decline"]
  readonly paymentMethod: string | null

  constructor(intent: PaymentIntent, clean: (text: string) => string) {
    const generation = intent.metadata?.["generation"]
    this.id = intent.id
    this.status = statusOf(intent)
    this.amountMinor = intent.amount
    this.amountReceivedMinor = intent.amount_received ?? 0
    this.currency = intent.currency
    this.stripeCustomerId = idOf(intent.customer)
    this.chargeKey = intent.metadata?.["charge_key"] ?? null
    this.generation = generation !== undefined && /^\d{1,9}$/.test(generation) ? Number(generation) : null
    this.chargeId = idOf(intent.latest_charge)
    this.decline = declineOf(intent, clean)
    this.paymentMethod = idOf(intent.payment_method)
  }
}

/** A PaymentIntent in the words of the contract. `clean` removes secrets from Stripe's texts. */
export const toPayment = (intent: PaymentIntent, clean: (text: string) => string): GatewayPayment => new IntentPayment(intent, clean)
