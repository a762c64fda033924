/** A Charge of the one-call API, as far as it decides about money. */
import type { GatewayOrder, GatewayPayment } from "@purser/core"
import { Schema } from "effect"
import { idOf, Nullable, Reference } from "./answers.ts"

/** A Charge. Uncaptured ones are not made by us and are refused. */
export const Charge = Schema.Struct({
  object: Schema.Literal("charge"),
  id: Schema.NonEmptyString,
  status: Schema.Literals(["succeeded", "pending", "failed"]),
  amount: Schema.Int,
  amount_captured: Nullable(Schema.Int),
  captured: Schema.optionalKey(Schema.Boolean),
  currency: Schema.NonEmptyString,
  customer: Nullable(Reference),
  failure_code: Nullable(Schema.String),
  failure_message: Nullable(Schema.String),
  outcome: Nullable(Schema.Struct({ reason: Nullable(Schema.String), advice_code: Nullable(Schema.String) })),
  metadata: Nullable(Schema.Record(Schema.String, Schema.String))
})
export type Charge = typeof Charge.Type

const statuses = { succeeded: "succeeded", pending: "processing", failed: "declined" } as const

/** Which attempt a charge belongs to. */
export const attemptOf = (charge: Charge): string => charge.metadata?.["attempt"] ?? "1"

/** A Charge in the words of the contract, under the id by which the ledger knows it. */
export const toPayment = (id: string, order: GatewayOrder, charge: Charge, clean: (text: string) => string): GatewayPayment => ({
  id,
  status: statuses[charge.status],
  amountMinor: charge.amount,
  amountReceivedMinor: charge.status === "succeeded" ? charge.amount_captured ?? charge.amount : 0,
  currency: charge.currency,
  stripeCustomerId: idOf(charge.customer),
  chargeKey: charge.metadata?.["charge_key"] ?? null,
  generation: order.generation,
  chargeId: charge.id,
  decline: charge.status !== "failed" ? null : {
    code: charge.failure_code ?? "card_declined",
    declineCode: charge.outcome?.reason ?? null,
    detail: clean(charge.failure_message ?? ""),
    adviceCode: charge.outcome?.advice_code ?? null,
    chargeId: charge.id
  }
})
