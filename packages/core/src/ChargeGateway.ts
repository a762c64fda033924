/**
 * The contract of a payment processor in two steps: make an object that can be paid at most once, then confirm it.
 *
 * The engine stores the object's id between the two. `create` moves no money; `confirm` of one object succeeds at most
 * once, so that it may be repeated for ever. A gateway makes no retry of its own: it cannot know what is safe.
 */
import { Context, type Effect, Layer } from "effect"
import type { ChargeError } from "./ChargeError.ts"
import type { ChargeKey } from "./ChargeKey.ts"
import type { ChargeRequest } from "./ChargeRequest.ts"
import { makeGatewayMemory } from "./internal/gatewayMemory.ts"

/** One generation of one charge at the processor. */
export interface GatewayOrder {
  readonly chargeKey: ChargeKey
  readonly request: ChargeRequest
  readonly generation: number
  /** The attempt that is, or will be, unresolved; 1 when left out. */
  readonly attempt?: number
}

/** The processor's object as it stands. Amounts in minor units. */
export interface GatewayPayment {
  readonly id: string
  /** `draft`: its parts are still being added by `prepare`, so that its amount says nothing yet. */
  readonly status: "draft" | "unconfirmed" | "declined" | "requires_action" | "processing" | "succeeded" | "canceled"
  readonly amountMinor: number
  readonly amountReceivedMinor: number
  readonly currency: string
  readonly stripeCustomerId: string | null
  /** From the object's metadata; null when it has none of ours. */
  readonly chargeKey: string | null
  readonly generation: number | null
  readonly chargeId: string | null
  /** Of the last refused attempt, if any. */
  readonly decline: {
    readonly code: string
    readonly declineCode: string | null
    readonly detail: string
    readonly adviceCode?: string | null
    /** The failed charge, which tells this refusal from an earlier one; null or left out when it is not known. */
    readonly chargeId?: string | null
  } | null
  /** The method that the object holds now, where the processor says so. */
  readonly paymentMethod?: string | null
}

/** The processor. Every method needs nothing and fails with `ChargeError` only. */
export class ChargeGateway extends Context.Service<ChargeGateway, {
  /** The name in logs and events, for example `payment_intents`. */
  readonly name: string
  /**
   * True for ids of objects that do not exist at the processor until `confirm`, where the idempotency key alone stands
   * between a repeat and a second payment. Such a key is never got round, and a use of it by others stops the charge.
   */
  readonly isOneCall?: (id: string) => boolean
  /**
   * Brings a `draft` to `unconfirmed` with its final amount, adding only what is missing, or leaves what is ready as it is;
   * moves no money. For gateways whose `create` answers a `draft`.
   */
  readonly prepare?: (order: GatewayOrder, id: string, keySuffix: string) => Effect.Effect<GatewayPayment, ChargeError>
  /**
   * By which id the ledger would know a payment that stands without an object made before it (see `isOneCall`); `undefined` for
   * any other, which is known by its own id.
   */
  readonly nameOf?: (chargeKey: ChargeKey, payment: { readonly id: string; readonly createdMs: number }) => string | undefined
  /** A question of no consequence, to learn whether the processor answers at all; a refusal is an answer. */
  readonly probe?: Effect.Effect<void, ChargeError>
  /**
   * What `create` would answer for an order, where it makes no call: the ledger can then name the object in the act of claiming.
   * `undefined`, or left out, where an object has to be made.
   */
  readonly unsent?: (order: GatewayOrder, nowMs: number) => GatewayPayment | undefined
  /** Makes the unconfirmed object. `keySuffix` is empty, or sets a repeat apart from a stored 5xx. */
  readonly create: (order: GatewayOrder, keySuffix: string) => Effect.Effect<GatewayPayment, ChargeError>
  /**
   * Looks among the customer's objects since a time for one that carries our charge key: an orphan's only trace. A paid
   * one of any generation comes first, since a restored ledger may be behind; a canceled one is as good as none.
   */
  readonly find: (order: GatewayOrder, sinceMs: number) => Effect.Effect<GatewayPayment | undefined, ChargeError>
  /** The object as it stands now. */
  readonly retrieve: (order: GatewayOrder, id: string) => Effect.Effect<GatewayPayment, ChargeError>
  /** The customer's default method, or an `InvalidRequest` when there is none. */
  readonly defaultPaymentMethod: (order: GatewayOrder) => Effect.Effect<string, ChargeError>
  /** Asks for the money. A refusal is `CardDeclined` or `AuthenticationRequired`; an object that was paid before is answered as `succeeded`. */
  readonly confirm: (order: GatewayOrder, input: {
    readonly id: string
    readonly attempt: number
    readonly paymentMethod: string
    readonly keySuffix: string
  }) => Effect.Effect<GatewayPayment, ChargeError>
  /** Gives an unpaid object up, so that it can never be paid. */
  readonly cancel: (order: GatewayOrder, id: string) => Effect.Effect<GatewayPayment, ChargeError>
}>()("@purser/core/ChargeGateway") {
  /** A processor in memory whose customers all pay; methods named after Stripe's test cards are declined. */
  static readonly layerMemory: Layer.Layer<ChargeGateway> = Layer.effect(ChargeGateway, makeGatewayMemory)
}
