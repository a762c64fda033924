/** The account's objects as schemas, and in the words of `ProcessorAccount`. States that we do not know stay visible as `other`. */
import { type AccountCharge, accountIdentity, type AccountOrigin, type AccountPayment, type AccountReversal } from "@purser/core"
import { Schema } from "effect"
import { idOf, Nullable, Reference } from "./answers.ts"

const Metadata = Nullable(Schema.Record(Schema.String, Schema.String))
const common = { id: Schema.NonEmptyString, created: Schema.Int, currency: Schema.NonEmptyString, metadata: Metadata }

/** A PaymentIntent, in whatever state. */
export const AnyIntent = Schema.Struct({
  ...common,
  object: Schema.Literal("payment_intent"),
  status: Schema.String,
  amount: Schema.Int,
  amount_received: Nullable(Schema.Int),
  customer: Nullable(Reference),
  latest_charge: Nullable(Reference),
  payment_method: Nullable(Reference),
  last_payment_error: Nullable(Schema.Struct({}))
})

/** An invoice. */
export const AnyInvoice = Schema.Struct({
  ...common,
  object: Schema.Literal("invoice"),
  status: Nullable(Schema.String),
  total: Schema.Int,
  amount_paid: Nullable(Schema.Int),
  customer: Nullable(Reference)
})

/** A charge. */
export const AnyCharge = Schema.Struct({
  ...common,
  object: Schema.Literal("charge"),
  status: Schema.String,
  amount: Schema.Int,
  amount_refunded: Nullable(Schema.Int),
  customer: Nullable(Reference),
  payment_intent: Nullable(Reference),
  payment_method: Nullable(Schema.String),
  disputed: Schema.optionalKey(Schema.Boolean),
  description: Nullable(Schema.String)
})

/** A refund or a dispute. */
export const Reversal = Schema.Struct({
  ...common,
  object: Schema.Literals(["refund", "dispute"]),
  amount: Schema.Int,
  charge: Nullable(Reference),
  payment_intent: Nullable(Reference),
  status: Nullable(Schema.String),
  reason: Nullable(Schema.String)
})

/** An event, as far as it names the request behind an object. */
export const OriginEvent = Schema.Struct({
  object: Schema.Literal("event"),
  id: Schema.NonEmptyString,
  request: Nullable(Schema.Struct({ id: Nullable(Schema.String), idempotency_key: Nullable(Schema.String) })),
  data: Schema.Struct({ object: Schema.Struct({ id: Schema.optionalKey(Schema.NullOr(Schema.String)) }) })
})

/** What ties an invoice to a payment. */
export const InvoicePayment = Schema.Struct({
  object: Schema.Literal("invoice_payment"),
  id: Schema.NonEmptyString,
  invoice: Reference
})

/** A page of a list; each item is read by its own schema. */
export const AnyPage = Schema.Struct({
  object: Schema.Literal("list"),
  has_more: Schema.Boolean,
  data: Schema.Array(Schema.Unknown)
})

const intentStatus = (intent: typeof AnyIntent.Type): AccountPayment["status"] => {
  switch (intent.status) {
    case "succeeded":
    case "processing":
    case "requires_action":
    case "canceled":
      return intent.status
    case "requires_confirmation":
      return "unconfirmed"
    case "requires_payment_method":
      return intent.last_payment_error === null || intent.last_payment_error === undefined ? "unconfirmed" : "declined"
    default:
      return "other"
  }
}

const invoiceStatus: Readonly<Record<string, AccountPayment["status"]>> = {
  draft: "draft", open: "unconfirmed", paid: "succeeded", void: "canceled", uncollectible: "canceled"
}

/** A payment object of either kind. */
export const toAccountPayment = (object: typeof AnyIntent.Type | typeof AnyInvoice.Type): AccountPayment => {
  const common = {
    id: object.id,
    currency: object.currency,
    stripeCustomerId: idOf(object.customer),
    createdMs: object.created * 1000,
    identity: accountIdentity(object.metadata)
  }
  return object.object === "invoice"
    ? {
      ...common,
      status: invoiceStatus[object.status ?? ""] ?? "other",
      amountMinor: object.total,
      amountReceivedMinor: object.amount_paid ?? 0,
      chargeId: null,
      paymentMethod: null
    }
    : {
      ...common,
      status: intentStatus(object),
      amountMinor: object.amount,
      amountReceivedMinor: object.amount_received ?? 0,
      chargeId: idOf(object.latest_charge),
      paymentMethod: idOf(object.payment_method)
    }
}

/** A charge. */
export const toAccountCharge = (charge: typeof AnyCharge.Type, clean: (text: string) => string): AccountCharge => ({
  id: charge.id,
  paymentIntentId: idOf(charge.payment_intent),
  status: charge.status === "succeeded" ? "succeeded" : charge.status === "pending" ? "pending" : "failed",
  amountMinor: charge.amount,
  amountRefundedMinor: charge.amount_refunded ?? 0,
  currency: charge.currency,
  stripeCustomerId: idOf(charge.customer),
  createdMs: charge.created * 1000,
  isDisputed: charge.disputed === true,
  paymentMethod: charge.payment_method ?? null,
  description: charge.description === null || charge.description === undefined ? null : clean(charge.description),
  metadata: charge.metadata ?? {}
})

/** A refund or a dispute. */
export const toReversal = (reversal: typeof Reversal.Type): AccountReversal => ({
  id: reversal.id,
  kind: reversal.object,
  chargeId: idOf(reversal.charge),
  paymentIntentId: idOf(reversal.payment_intent),
  amountMinor: reversal.amount,
  currency: reversal.currency,
  status: reversal.status ?? "unknown",
  reason: reversal.reason ?? null,
  createdMs: reversal.created * 1000,
  metadata: reversal.metadata ?? {}
})

/** Where an event's object came from; undefined when the event names none. */
export const toOrigin = (event: typeof OriginEvent.Type): AccountOrigin | undefined => {
  const objectId = event.data.object.id
  return objectId === null || objectId === undefined
    ? undefined
    : { objectId, idempotencyKey: event.request?.idempotency_key ?? null, requestId: event.request?.id ?? null }
}
