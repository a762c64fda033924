/**
 * What an answer of Stripe proves about money. Whatever cannot be read as one of the known answers proves nothing, and
 * what nothing is known about stays reserved.
 *
 * A declined intent is not a proof: whoever holds its client secret may still confirm it past this proxy. Only a canceled
 * one can never be paid.
 */
import { Option, Schema } from "effect"
import { periodOf } from "./internal/periodOf.ts"
import type { RouteKind } from "./RoutePolicy.ts"

/**
 * - `paid`: money has moved. `held`: it may still. `declined`: this call will never move any.
 * - `canceled`: the intent can never be paid. `nothing`: this attempt was not carried out.
 * - `unknown`: any of these. `read`: a call that asks for no money.
 */
export type MoneyEffect = "paid" | "held" | "declined" | "canceled" | "nothing" | "unknown" | "read"

/** The proof. `amountMinor` is what Stripe took, where it says so. */
export interface Evidence {
  readonly effect: MoneyEffect
  /** The charge or intent that the answer is. */
  readonly objectId: string | null
  readonly intentId: string | null
  readonly amountMinor: number | null
  readonly currency: string | null
  readonly customer: string | null
  /** The billing period in an intent's metadata, in its one spelling. */
  readonly period: string | null
}

/** An id as Stripe writes them: anything else is no known answer, and nothing that a store could choke on. */
const Id = Schema.String.check(Schema.isPattern(/^[\x21-\x7e]{1,255}$/))
const AmountMinor = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 999_999_999_999 }))

const Reference = Schema.NullOr(Schema.Union([Id, Schema.Struct({ id: Id })]))

const Intent = Schema.Struct({
  object: Schema.Literal("payment_intent"),
  id: Id,
  status: Schema.NonEmptyString,
  amount: AmountMinor,
  currency: Id,
  customer: Schema.optionalKey(Reference),
  customer_account: Schema.optionalKey(Reference)
})

const Labelled = Schema.Struct({ metadata: Schema.Struct({ billing_period: Schema.NonEmptyString }) })

const Charge = Schema.Struct({
  object: Schema.Literal("charge"),
  id: Id,
  status: Schema.Literals(["succeeded", "pending", "failed"]),
  amount: AmountMinor
})

const FailedRefund = Schema.Struct({ object: Schema.Literal("refund"), status: Schema.Literals(["failed", "canceled"]) })

const Failure = Schema.Struct({
  error: Schema.Struct({ type: Schema.NonEmptyString, payment_intent: Schema.optionalKey(Schema.Unknown) })
})

const decodeIntent = Schema.decodeUnknownOption(Intent)
const decodeLabelled = Schema.decodeUnknownOption(Labelled)
const decodeCharge = Schema.decodeUnknownOption(Charge)
const decodeFailedRefund = Schema.decodeUnknownOption(FailedRefund)
const decodeFailure = Schema.decodeUnknownOption(Failure)
const decodeJson = Schema.decodeOption(Schema.fromJsonString(Schema.Unknown))

const bare = (effect: MoneyEffect): Evidence => ({ effect, objectId: null, intentId: null, amountMinor: null, currency: null, customer: null, period: null })

const idOf = (reference: typeof Reference.Type | undefined): string | null =>
  reference === undefined || reference === null ? null : typeof reference === "string" ? reference : reference.id

const ofIntent = (input: unknown): Evidence | undefined => {
  const intent = Option.getOrUndefined(decodeIntent(input))
  if (intent === undefined) return undefined
  const effect = intent.status === "succeeded" ? "paid" : intent.status === "canceled" ? "canceled" : "held"
  return {
    effect, objectId: intent.id, intentId: intent.id, amountMinor: intent.amount, currency: intent.currency,
    customer: idOf(intent.customer) ?? idOf(intent.customer_account),
    period: Option.match(decodeLabelled(input), { onNone: () => null, onSome: ({ metadata }) => periodOf(metadata.billing_period) })
  }
}

const notCarriedOut = new Set([400, 401, 403, 404, 429])

/** What the answer to a call of this kind proves. */
export const evidenceOf = (kind: RouteKind, status: number, body: Buffer): Evidence => {
  const json = Option.getOrUndefined(decodeJson(body.toString("utf8")))
  if (status === 200) {
    if (kind === "charge") {
      const charge = Option.getOrUndefined(decodeCharge(json))
      if (charge === undefined) return bare("unknown")
      if (charge.status === "failed") return bare("declined")
      return { ...bare(charge.status === "succeeded" ? "paid" : "held"), objectId: charge.id, amountMinor: charge.amount }
    }
    // A refund that failed at once gives nothing back, and never will.
    if (kind === "refund") return bare(Option.isSome(decodeFailedRefund(json)) ? "declined" : "read")
    return ofIntent(json) ?? bare("unknown")
  }
  const failure = Option.getOrUndefined(decodeFailure(json))
  if (failure === undefined || status >= 500) return bare("unknown")
  const intent = ofIntent(failure.error.payment_intent)
  if (intent !== undefined) return intent
  if (status === 402 && kind === "charge" && failure.error.type === "card_error") return bare("declined")
  return bare(notCarriedOut.has(status) ? "nothing" : "unknown")
}
