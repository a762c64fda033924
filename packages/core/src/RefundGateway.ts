/**
 * The contract of refunds at the processor. One call moves money, so that what is repeated, and when, is the engine's
 * decision: it looks first. A gateway makes no retry of its own.
 */
import { Context, type Effect, Layer } from "effect"
import type { ChargeError } from "./ChargeError.ts"
import type { ChargeKey } from "./ChargeKey.ts"
import { makeRefundGatewayMemory } from "./internal/refundGatewayMemory.ts"
import type { RefundKey, RefundReason } from "./Refund.ts"

/** One refund of one payment. */
export interface RefundOrder {
  readonly refundKey: RefundKey
  readonly chargeKey: ChargeKey
  /** Of the charge; it may name the connected account. */
  readonly namespace: string
  readonly refundId: string
  readonly attempt: number
  readonly paymentIntentId: string
  readonly chargeId: string | null
  readonly amountMinor: number
  readonly currency: string
  readonly reason: RefundReason | null
}

/** The processor's refund as it stands. Amounts in minor units. */
export interface GatewayRefund {
  readonly id: string
  readonly status: "pending" | "requires_action" | "succeeded" | "failed" | "canceled"
  readonly amountMinor: number
  readonly currency: string
  readonly paymentIntentId: string | null
  readonly chargeId: string | null
  /** From the object's metadata; null when it has none of ours. */
  readonly refundKey: string | null
  /** Why it failed or waits, if the processor says so. */
  readonly detail: string | null
}

/** The code of an `InvalidRequest` that says that nothing is left to give back. */
export const alreadyRefundedCode = "charge_already_refunded"

/** Refunds. Every method needs nothing and fails with `ChargeError` only. */
export class RefundGateway extends Context.Service<RefundGateway, {
  /** Gives money back, under the key of the refund and its attempt. */
  readonly refund: (order: RefundOrder) => Effect.Effect<GatewayRefund, ChargeError>
  /** The refunds of this payment that carry our refund key; a list that does not end is an error, not an absence. */
  readonly find: (order: RefundOrder) => Effect.Effect<ReadonlyArray<GatewayRefund>, ChargeError>
  /** The refund as it stands now. */
  readonly retrieve: (order: RefundOrder, id: string) => Effect.Effect<GatewayRefund, ChargeError>
}>()("@purser/core/RefundGateway") {
  /** Refunds in memory, for tests and trials; it knows no payments, so that it has no ceiling of its own. */
  static readonly layerMemory: Layer.Layer<RefundGateway> = Layer.effect(RefundGateway, makeRefundGatewayMemory)
}
