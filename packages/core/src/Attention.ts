/**
 * The contract of what waits for a person: charges that nobody holds, charges whose object differs, and rows of files and
 * requests that the ledger knows with other terms. Each comes with its evidence.
 *
 * An act here moves no money. It writes who did it and why on the event trail of the charge, in the same statement.
 */
import { Context, type Effect } from "effect"
import type { ChargeKey } from "./ChargeKey.ts"
import type { ChargeLine } from "./ChargeSearch.ts"
import type { LedgerError } from "./LedgerError.ts"

/** A charge in work that nobody holds any more, with its last event. */
export interface UnresolvedCharge extends ChargeLine {
  /** When its lease ran out, or when it was to be looked at again. */
  readonly sinceMs: number
  readonly worker: string | null
  readonly lastDetail: string | null
}

/** A row of a file, or a request, whose identity the ledger has with other terms: its own, and the charge as it stands. */
export interface RunConflict {
  /** Empty for a request that came over a transport; `line` is then its number among those. */
  readonly runId: string
  readonly line: number
  readonly source: string
  readonly seenAtMs: number
  /** The same terms came so often, the last time then; a row of a file comes once. */
  readonly times: number
  readonly lastAtMs: number
  /** Whose key sealed the request, where that is known. */
  readonly principal: string | null
  readonly amountMinor: number
  readonly currency: string
  readonly stripeCustomerId: string
  readonly paymentMethod: string | null
  readonly keptPaymentMethod: string | null
  /** When a person dropped the other terms; null while it waits. A request that comes once more waits again. */
  readonly resolvedAtMs: number | null
  readonly charge: ChargeLine
}

/** How many of each wait. */
export interface AttentionCounts {
  readonly unresolved: number
  readonly quarantined: number
  readonly conflicts: number
  readonly deadLetters: number
  readonly unknownObjects: number
}

/** The kinds of what waits. */
export const attentionKinds = ["unresolved", "quarantined", "conflicts", "deadLetters", "unknownObjects"] as const satisfies ReadonlyArray<keyof AttentionCounts>

/** Who acts, and why. */
export interface OperatorReason {
  readonly actor: string
  readonly reason: string
}

/** What waits. Every method needs nothing and fails with `LedgerError` only. */
export class Attention extends Context.Service<Attention, {
  /** How many wait, each counted up to `most`. */
  readonly counts: (most: number) => Effect.Effect<AttentionCounts, LedgerError>
  /** Charges whose lease ran out at least `graceMs` ago, the longest first. */
  readonly unresolved: (graceMs: number, limit: number) => Effect.Effect<ReadonlyArray<UnresolvedCharge>, LedgerError>
  /** Quarantined charges in the order of their keys. */
  readonly quarantined: (afterKey: string, limit: number) => Effect.Effect<ReadonlyArray<ChargeLine>, LedgerError>
  /** Conflicts that nobody has dealt with, in the order of run and line. */
  readonly conflicts: (after: { readonly runId: string; readonly line: number } | null, limit: number) => Effect.Effect<ReadonlyArray<RunConflict>, LedgerError>
  /** Conflicts of one charge, those that were dealt with too. */
  readonly conflictsOf: (chargeKey: ChargeKey) => Effect.Effect<ReadonlyArray<RunConflict>, LedgerError>
  /** The other terms are dropped: the charge stays as the ledger has it. False when nothing was open. */
  readonly keepCharge: (input: { readonly runId: string; readonly line: number } & OperatorReason) => Effect.Effect<boolean, LedgerError>
  /**
   * Ends a quarantine: the charge is taken up where it stood, and its object is read before anything else; where it still
   * differs, the mark comes back. False when there was none.
   */
  readonly endQuarantine: (chargeKey: ChargeKey, by: OperatorReason) => Effect.Effect<boolean, LedgerError>
  /** A charge that was handed back for later may be taken up at once. False when there was nothing to wait for, or somebody has it. */
  readonly hasten: (chargeKey: ChargeKey, by: OperatorReason) => Effect.Effect<boolean, LedgerError>
}>()("@purser/core/Attention") {}
