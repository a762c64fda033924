/**
 * The contract of the pre-flight ledger: one row per charge, a small state machine with a lease.
 *
 * The ledger decides who may charge, and remembers what is known about the money. It makes no call to a processor. A
 * write with an old epoch changes nothing, and leases are counted on the store's clock, never on a worker's.
 * Drivers may answer many calls with one statement.
 */
import { Context, type Effect, Layer } from "effect"
import type { ChargeKey } from "./ChargeKey.ts"
import type { ChargeOutcome } from "./ChargeOutcome.ts"
import type { ChargeRequest, ChargeTerms } from "./ChargeRequest.ts"
import { makeLedgerMemory } from "./internal/ledgerMemory.ts"
import type { LedgerError } from "./LedgerError.ts"

/** Where a charge stands; see `docs/protocol.md` for what each state says about the money. */
export type ChargeState =
  | "planned"
  | "claimed"
  | "attached"
  | "processing"
  | "requires_action"
  | "succeeded"
  | "declined"
  | "rejected"
  | "canceled"

/** A worker's hold on one charge. `epoch` fences: it moves with every take-over. */
export interface Lease {
  readonly chargeKey: ChargeKey
  readonly worker: string
  readonly epoch: number
}

/** A charge in the hands of the caller, with all that is needed to go on from where it stands. */
export interface ClaimedCharge {
  readonly lease: Lease
  readonly leaseLeftMs: number
  readonly request: ChargeRequest
  /** `claimed`: no payment object is known. `attached`: one is. `processing`: the processor settles it later. */
  readonly state: "claimed" | "attached" | "processing"
  /** True when an earlier holder may have called the processor. */
  readonly resumed: boolean
  readonly generation: number
  /** The confirm attempt that is, or will be, unresolved. Starts at 1. */
  readonly attempt: number
  readonly paymentIntentId: string | null
  /** The method frozen with the attempt; null until one is attached, unless the request names one. */
  readonly paymentMethod: string | null
  /** What a new object is to be paid with: a method chosen by an explicit act, else the request's; null for the customer's default. */
  readonly chosenMethod: string | null
  /** The failed charge of the last decline that was recorded, of whatever attempt. */
  readonly declinedChargeId: string | null
  /** Time since the first claim on the store's clock. */
  readonly sinceFirstClaimMs: number
  /** First claim, in milliseconds of the Unix epoch on the store's clock. */
  readonly firstClaimedAtMs: number
}

/** What a first claim may do in the same act. A store that cannot leaves it undone, and its answer says so. */
export interface ClaimExtras {
  /** The object that `attach` would tie to the charge, where its name is known before any call; with the method that pays it. */
  readonly object?: { readonly id: string; readonly paymentMethod: string }
  /** Whether to take the room that `SpendCap.reserve` would; only where ledger and cap name the same `store`. */
  readonly room?: boolean
}

/** What a claim finds. `hasRoom`: room under the cap was taken with it. */
export type ClaimAnswer =
  | { readonly _tag: "Claimed"; readonly charge: ClaimedCharge; readonly hasRoom?: boolean }
  | { readonly _tag: "AlreadySettled"; readonly outcome: ChargeOutcome }
  | { readonly _tag: "InProgress"; readonly leaseLeftMs: number }
  | { readonly _tag: "Quarantined"; readonly detail: string }
  /** The request names a revision that nobody has opened. */
  | { readonly _tag: "Unopened" }
  | { readonly _tag: "Conflict"; readonly expected: ChargeTerms; readonly actual: ChargeTerms }

/** A payment object to be tied to a charge by compare-and-set. */
export interface AttachInput {
  readonly lease: Lease
  readonly generation: number
  readonly paymentIntentId: string
  readonly paymentMethod: string | null
}

/** `Attached` by us now (or by us before); `Lost` to another worker, whose object is the one that counts. */
export type AttachAnswer =
  | { readonly _tag: "Attached" }
  | { readonly _tag: "Lost"; readonly winnerId: string | null }

/**
 * A fact to record. A success of the attached object is recorded whoever holds the lease, because it is true; anything
 * else needs the caller's epoch and attempt.
 */
export interface SettleInput {
  readonly lease: Lease
  readonly attempt: number
  readonly paymentIntentId: string | null
  readonly outcome: ChargeOutcome
  /** For `Processing`: when to look again. */
  readonly pollAfterMs?: number
  /** For `Declined`: when policy asks again; left out, or null, where only a person may. */
  readonly nextAttemptAfterMs?: number | null
}

/**
 * `Settled`: recorded now; `late` where the lease was no longer the caller's, so that the charge's room under the cap may have been given back
 * meanwhile. `Recorded`: this or another outcome stood there already. `LeaseLost`: nothing was changed.
 */
export type SettleAnswer =
  | { readonly _tag: "Settled"; readonly outcome: ChargeOutcome; readonly late?: true }
  | { readonly _tag: "Recorded"; readonly outcome: ChargeOutcome }
  | { readonly _tag: "LeaseLost" }

/** A new generation after the processor canceled the old object. */
export interface RenewInput {
  readonly lease: Lease
  readonly generation: number
  readonly paymentIntentId: string
}

/** A paid object of which the ledger knows nothing, and the row that it belongs to. */
export interface AdoptInput {
  readonly request: ChargeRequest
  readonly paymentIntentId: string
  /** What it was paid with. */
  readonly paymentMethod: string | null
  readonly worker: string
}

/** One row as people and reports see it. */
export interface ChargeRecord {
  readonly chargeKey: ChargeKey
  readonly request: ChargeRequest
  readonly state: ChargeState
  readonly attempt: number
  readonly generation: number
  readonly paymentIntentId: string | null
  readonly outcome: ChargeOutcome | null
  readonly quarantine: string | null
  /** When policy asks again after a decline, in milliseconds of the Unix epoch on the store's clock. */
  readonly nextAttemptAtMs: number | null
  /** The method that an explicit act chose instead of the request's. */
  readonly chosenMethod: string | null
  /** For a revision: the charge that it bills anew. */
  readonly revises: ChargeKey | null
}

/** A reopening: which states, who, why, and with what it is to be paid from now on. */
export interface ReopenInput {
  readonly chargeKeys: ReadonlyArray<ChargeKey>
  readonly from: ReadonlyArray<"declined" | "rejected" | "requires_action">
  readonly actor: string
  readonly reason: string
  /** Moves only what was refused at this attempt, so that of many who ask for the next one, one moves the row. */
  readonly attempt?: number
  /** A payment method to use instead of the one before; the terms of the charge stay as they are. */
  readonly paymentMethod?: string
}

/** One line of the append-only audit trail. */
export interface ChargeEvent {
  readonly chargeKey: ChargeKey
  readonly sequence: number
  readonly atMs: number
  readonly from: ChargeState | null
  readonly to: ChargeState
  readonly worker: string | null
  readonly attempt: number
  readonly detail: string | null
  /** Who asked, where the transport knows it; see `Principal`. */
  readonly principal: string | null
}

/** Counts and sums of one state, in minor units per currency. */
export interface StateTotal {
  readonly billingPeriod: string
  readonly currency: string
  readonly state: ChargeState
  readonly charges: number
  readonly amountMinor: bigint
  readonly receivedMinor: bigint
  readonly quarantined: number
}

/** The store of charges. Every method needs nothing and fails with `LedgerError` only. */
export class Ledger extends Context.Service<Ledger, {
  /** Where the rows are. A cap that names the same one can be served by the same act. */
  readonly store?: object
  /**
   * Takes the charge, or says why not. The first claim freezes the terms, and does what `extras` asks for in the same act, where the
   * store can: a charge that is answered as `attached` and not `resumed` was tied to the object by this very claim.
   */
  readonly claim: (request: ChargeRequest, worker: string, extras?: ClaimExtras) => Effect.Effect<ClaimAnswer, LedgerError>
  /**
   * Ties the payment object to the charge where none is tied and the generation and lease are ours. The same object again
   * freezes the payment method of an attempt that has none yet.
   */
  readonly attach: (input: AttachInput) => Effect.Effect<AttachAnswer, LedgerError>
  /** Records a fact and answers with what stands in the row after it. */
  readonly settle: (input: SettleInput) => Effect.Effect<SettleAnswer, LedgerError>
  /** Makes the lease last its full time again, or as long as it lasts anyway; false when it is lost. */
  readonly extend: (lease: Lease) => Effect.Effect<boolean, LedgerError>
  /** Gives the charge back unsettled; anyone may take it up after `retryAfterMs`. False, and nothing is changed, when the lease is lost. */
  readonly handBack: (lease: Lease, retryAfterMs: number, detail: string) => Effect.Effect<boolean, LedgerError>
  /** Next generation, without a payment object; false when the row is no longer ours or has moved on. */
  readonly renew: (input: RenewInput) => Effect.Effect<boolean, LedgerError>
  /** Marks a charge whose object at the processor does not match; no claim takes it until a person clears it. */
  readonly quarantine: (lease: Lease, detail: string) => Effect.Effect<void, LedgerError>
  /** Takes over up to `limit` charges whose lease ran out, oldest first, skipping rows that others are taking. */
  readonly takeExpired: (worker: string, limit: number) => Effect.Effect<ReadonlyArray<ClaimedCharge>, LedgerError>
  /**
   * Takes over a charge that waits outside (`processing`, `requires_action`), since its object is said to have moved on;
   * `undefined` in any other state, and for a quarantined row. It is `processing` while its object is read.
   */
  readonly takeWaiting: (chargeKey: ChargeKey, worker: string) => Effect.Effect<ClaimedCharge | undefined, LedgerError>
  /**
   * Takes an object that was paid without the ledger's knowing into the row that it belongs to, in one act: a row without an
   * object that nobody holds, or a new one. It is `processing` from then on, so that whoever goes on reads the object and
   * asks nobody for money; a refused row moves to its next attempt. `undefined` where the row is held, names an object, is
   * quarantined or has other terms. A new row of a revision needs the paid row that it bills anew, and no other that does so.
   */
  readonly adopt: (input: AdoptInput) => Effect.Effect<ClaimedCharge | undefined, LedgerError>
  /**
   * Rows of a period in the order in which they came, those of one act by their keys, after the row `afterKey`, or from the first where it is empty. An act is as old as its
   * beginning: rows of one that ends while somebody walks may stand before the place that was reached, and are seen by the next walk.
   */
  readonly page: (billingPeriod: string, afterKey: string, limit: number) => Effect.Effect<ReadonlyArray<ChargeRecord>, LedgerError>
  /** When the newest event of all was written, on the store's clock; `undefined` while there is none. */
  readonly newestEventMs: Effect.Effect<number | undefined, LedgerError>
  /** The namespaces of a period's rows. */
  readonly namespaces: (billingPeriod: string) => Effect.Effect<ReadonlyArray<string>, LedgerError>
  /** Settled charges that moved no money and whose room under the cap has not been given back yet. */
  readonly releaseDue: (limit: number) => Effect.Effect<ReadonlyArray<{ readonly chargeKey: ChargeKey; readonly attempt: number }>, LedgerError>
  /** Notes that the room of this attempt was given back; nothing happens when the charge has been taken up again. */
  readonly markReleased: (chargeKey: ChargeKey, attempt: number) => Effect.Effect<void, LedgerError>
  /** Takes charges that ended unpaid up again by an explicit act; the next attempt is always `n + 1`. Answers how many moved. */
  readonly reopen: (input: ReopenInput) => Effect.Effect<number, LedgerError>
  /** Declined charges whose next attempt is due by policy, the longest due first. */
  readonly attemptsDue: (limit: number) => Effect.Effect<ReadonlyArray<ChargeRecord>, LedgerError>
  /** One row. */
  readonly find: (chargeKey: ChargeKey) => Effect.Effect<ChargeRecord | undefined, LedgerError>
  /** The audit trail of one charge, in order. */
  readonly events: (chargeKey: ChargeKey) => Effect.Effect<ReadonlyArray<ChargeEvent>, LedgerError>
  /** Counts and sums per period, currency and state. */
  readonly report: (billingPeriod?: string) => Effect.Effect<ReadonlyArray<StateTotal>, LedgerError>
}>()("@purser/core/Ledger") {
  /** A ledger in memory on Effect's clock, for tests and trials; leases last `leaseMs` (15 s). */
  static readonly layerMemory: Layer.Layer<Ledger> = Layer.effect(Ledger, makeLedgerMemory({ leaseMs: 15_000 }))
}
