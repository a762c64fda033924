/**
 * The contract of the book of refunds: one row per refund, stored before the processor is called, with a lease.
 *
 * It decides how much may still go back, in one act under the charge's row: what was received, less every refund that
 * was made or may have been made, by the book or, as far as `Sightings` know, by others. It calls no processor and touches no cap: a refund gives no room back.
 */
import { Context, type Effect, Layer } from "effect"
import type { ChargeKey } from "./ChargeKey.ts"
import { makeRefundLedgerMemory } from "./internal/refundLedgerMemory.ts"
import type { ChargeState, Ledger } from "./Ledger.ts"
import type { LedgerError } from "./LedgerError.ts"
import type { RebillAnswer, RebillInput } from "./Rebill.ts"
import type { RefundKey, RefundOutcome, RefundReason, RefundRequest } from "./Refund.ts"

/** Where a refund stands. `requested`: it is stored, and the processor may have been called. */
export type RefundState = "requested" | "pending" | "succeeded" | "failed" | "already_refunded" | "refused"

/** A process's hold on one refund; `epoch` fences. */
export interface RefundLease {
  readonly refundKey: RefundKey
  readonly worker: string
  readonly epoch: number
}

/** A refund in the hands of the caller. Amounts in minor units, times on the store's clock. */
export interface ClaimedRefund {
  readonly lease: RefundLease
  readonly leaseLeftMs: number
  readonly chargeKey: ChargeKey
  /** Of the charge. */
  readonly namespace: string
  readonly refundId: string
  readonly state: "requested" | "pending"
  readonly amountMinor: number
  readonly currency: string
  readonly reason: RefundReason | null
  /** What was paid: the processor's payment object, and its charge where it has one. */
  readonly paymentIntentId: string
  readonly chargeId: string | null
  readonly processorRefundId: string | null
  /** Counts the explicit acts; starts at 1. */
  readonly attempt: number
  /** True when an earlier holder may have called the processor. */
  readonly resumed: boolean
}

/** What a claim finds. */
export type RefundClaimAnswer =
  | { readonly _tag: "Claimed"; readonly refund: ClaimedRefund }
  | { readonly _tag: "AlreadySettled"; readonly outcome: RefundOutcome }
  | { readonly _tag: "InProgress"; readonly leaseLeftMs: number }
  | { readonly _tag: "NotPaid"; readonly state: ChargeState | null }
  | { readonly _tag: "Conflict"; readonly expectedMinor: number; readonly actualMinor: number }
  | { readonly _tag: "TooLarge"; readonly requestedMinor: number; readonly leftMinor: number; readonly receivedMinor: number; readonly elsewhereMinor: number }

/** A fact to record. One with the processor's object is recorded whoever holds the lease; anything else needs the epoch. */
export interface RefundSettleInput {
  readonly lease: RefundLease
  readonly outcome: RefundOutcome
  /** For `RefundPending`: when to look again. */
  readonly pollAfterMs?: number
}

/** `Settled`: recorded now. `Recorded`: this or another outcome stood there already. `LeaseLost`: nothing was changed. */
export type RefundSettleAnswer =
  | { readonly _tag: "Settled"; readonly outcome: RefundOutcome }
  | { readonly _tag: "Recorded"; readonly outcome: RefundOutcome }
  | { readonly _tag: "LeaseLost" }

/** One refund as people and reports see it. */
export interface RefundRecord {
  readonly refundKey: RefundKey
  readonly chargeKey: ChargeKey
  /** Of the charge. */
  readonly namespace: string
  readonly refundId: string
  readonly state: RefundState
  readonly amountMinor: number
  readonly currency: string
  readonly reason: RefundReason | null
  readonly actor: string
  readonly note: string
  readonly attempt: number
  /** What was paid: the row's own payment, or one beside it that was named. */
  readonly paymentIntentId: string
  readonly processorRefundId: string | null
  readonly outcome: RefundOutcome | null
  readonly requestedAtMs: number
}

/** One line of the append-only trail of a refund. */
export interface RefundEvent {
  readonly refundKey: RefundKey
  readonly sequence: number
  readonly atMs: number
  readonly from: RefundState | null
  readonly to: RefundState
  readonly worker: string | null
  readonly attempt: number
  readonly detail: string | null
}

/** Counts and sums of one state, in minor units per period and currency. */
export interface RefundTotal {
  readonly billingPeriod: string
  readonly currency: string
  readonly state: RefundState
  readonly refunds: number
  readonly amountMinor: bigint
}

/** Counts and sums of what others gave back, in minor units per period and currency, as far as `Sightings` know. */
export type RefundElsewhereTotal = Omit<RefundTotal, "state">

/** The book of refunds. Every method needs nothing and fails with `LedgerError` only. */
export class RefundLedger extends Context.Service<RefundLedger, {
  /** Stores the refund and takes it, or says why not. The first claim freezes the amount. */
  readonly claim: (request: RefundRequest, worker: string) => Effect.Effect<RefundClaimAnswer, LedgerError>
  /** Records a fact and answers with what stands in the row after it. A success may still fail later; a failure is final. */
  readonly settle: (input: RefundSettleInput) => Effect.Effect<RefundSettleAnswer, LedgerError>
  /** Makes the lease last its full time again; false when it is lost. */
  readonly extend: (lease: RefundLease) => Effect.Effect<boolean, LedgerError>
  /** Gives the refund back undecided; anyone may take it up after `retryAfterMs`. */
  readonly handBack: (lease: RefundLease, retryAfterMs: number, detail: string) => Effect.Effect<void, LedgerError>
  /** Takes over up to `limit` refunds whose lease ran out, oldest first, skipping rows that others are taking. */
  readonly takeExpired: (worker: string, limit: number) => Effect.Effect<ReadonlyArray<ClaimedRefund>, LedgerError>
  /** Opens the next revision of an identity whose payment went back: a planned charge with terms of its own, linked to the one before. */
  readonly rebill: (input: RebillInput) => Effect.Effect<RebillAnswer, LedgerError>
  /** The charge that bills this one anew, if there is one. */
  readonly revisedBy: (chargeKey: ChargeKey) => Effect.Effect<ChargeKey | undefined, LedgerError>
  /** One refund. */
  readonly find: (refundKey: RefundKey) => Effect.Effect<RefundRecord | undefined, LedgerError>
  /** The refunds of one charge, oldest first. */
  readonly list: (chargeKey: ChargeKey) => Effect.Effect<ReadonlyArray<RefundRecord>, LedgerError>
  /** The trail of one refund, in order. */
  readonly events: (refundKey: RefundKey) => Effect.Effect<ReadonlyArray<RefundEvent>, LedgerError>
  /** Counts and sums per period, currency and state. */
  readonly report: (billingPeriod?: string) => Effect.Effect<ReadonlyArray<RefundTotal>, LedgerError>
  /** Refunds that others made and that are over, per period and currency. */
  readonly reportElsewhere: (billingPeriod?: string) => Effect.Effect<ReadonlyArray<RefundElsewhereTotal>, LedgerError>
}>()("@purser/core/RefundLedger") {
  /** A book in memory over the memory ledger's rows, and the memory `Sightings` where they are provided; leases last `leaseMs` (15 s). */
  static readonly layerMemory: Layer.Layer<RefundLedger, never, Ledger> = Layer.effect(RefundLedger, makeRefundLedgerMemory({ leaseMs: 15_000 }))
}
