/**
 * The contract of a billing run's book: the rows of one input, staged before anything is charged, then planned in the
 * ledger in one act, then paged out for dispatch and reported one by one.
 *
 * Staging keeps a refused input out of the ledger: only `plan` turns staged rows into obligations.
 */
import { Context, type Effect, Layer } from "effect"
import type { BillingPeriod } from "./BillingPeriod.ts"
import type { ChargeKey } from "./ChargeKey.ts"
import type { ChargeRequest, ChargeTerms } from "./ChargeRequest.ts"
import type { Currency } from "./Currency.ts"
import { makeRunLedgerMemory } from "./internal/runLedgerMemory.ts"
import type { ChargeState, Ledger } from "./Ledger.ts"
import type { LedgerError } from "./LedgerError.ts"

/** One input row: its first physical line and the request that it makes. */
export interface RunRow {
  readonly line: number
  readonly chargeKey: ChargeKey
  readonly request: ChargeRequest
}

/** Two or more rows of one identity. */
export interface DuplicateRows {
  readonly chargeKey: ChargeKey
  readonly customerId: string
  readonly billingPeriod: string
  readonly item: string | null
  readonly lines: ReadonlyArray<number>
}

/** Sum of the staged rows of one namespace, period and currency. */
export interface RunTotal {
  readonly namespace: string
  readonly billingPeriod: BillingPeriod
  readonly currency: Currency
  readonly rows: number
  readonly amountMinor: bigint
  /** The part that needs no more room under the cap: it holds some, is settled, or conflicts with the ledger and is not charged. */
  readonly coveredMinor: bigint
  /** Rows whose identity the ledger has already. */
  readonly presentRows: number
}

/** How one row of the run stands in the ledger. `conflict`: the ledger holds other terms for this identity. `quarantined` rows wait for a person. */
export interface RunRowReport {
  readonly line: number
  readonly chargeKey: ChargeKey
  readonly request: ChargeRequest
  readonly state: ChargeState | "conflict" | "quarantined" | "staged"
  readonly paymentIntentId: string | null
  readonly receivedMinor: number
  /** Decline code, refusal, the conflicting terms or the reason of the quarantine, in words. */
  readonly detail: string | null
  /** True when the charge had been settled before this run was planned. */
  readonly settledBefore: boolean
}

/** One row whose charge ended unpaid, and at which attempt. */
export interface UnpaidRow extends RunRow {
  readonly state: "declined" | "rejected"
  readonly attempt: number
}

/** Counts per state and currency of a whole run, from one statement. */
export interface RunStateTotal {
  readonly currency: Currency
  readonly state: RunRowReport["state"]
  readonly rows: number
  readonly amountMinor: bigint
  readonly receivedMinor: bigint
  readonly settledBefore: number
}

/** The runs' book. Every method needs nothing and fails with `LedgerError` only. */
export class RunLedger extends Context.Service<RunLedger, {
  /** Starts a run; rows that an earlier, unplanned run left staged are dropped. */
  readonly begin: (input: { readonly runId: string; readonly source: string }) => Effect.Effect<void, LedgerError>
  /** Adds rows; a few thousand at a time. */
  readonly stage: (runId: string, rows: ReadonlyArray<RunRow>) => Effect.Effect<void, LedgerError>
  /** Rows of one identity, at most `limit` identities. */
  readonly duplicates: (runId: string, limit: number) => Effect.Effect<ReadonlyArray<DuplicateRows>, LedgerError>
  /** Sums per namespace, period and currency. */
  readonly totals: (runId: string) => Effect.Effect<ReadonlyArray<RunTotal>, LedgerError>
  /**
   * Makes every staged row an obligation in the ledger, all or none. Identities that are there already stay as they are. `isNew` says that
   * none of them was a moment ago, which makes it quicker; where it is no longer so, nothing else is different.
   */
  readonly plan: (runId: string, isNew?: boolean) => Effect.Effect<{ readonly planned: number; readonly present: number }, LedgerError>
  /** Forgets a run that was not planned. */
  readonly discard: (runId: string) => Effect.Effect<void, LedgerError>
  /** Rows after `afterLine`, up to `throughLine` where it is given, that are still to be charged (planned, or with a lease that ran out), in line order. */
  readonly pending: (runId: string, afterLine: number, limit: number, throughLine?: number) => Effect.Effect<ReadonlyArray<RunRow>, LedgerError>
  /** Rows after `afterLine` with how they stand, in line order. */
  readonly report: (runId: string, afterLine: number, limit: number) => Effect.Effect<ReadonlyArray<RunRowReport>, LedgerError>
  /** The terms of the run's rows of these identities, by identity; a few thousand at a time. */
  readonly termsOf: (runId: string, chargeKeys: ReadonlyArray<ChargeKey>) => Effect.Effect<ReadonlyMap<ChargeKey, ChargeTerms>, LedgerError>
  /** Counts and sums of the run. */
  readonly summary: (runId: string) => Effect.Effect<ReadonlyArray<RunStateTotal>, LedgerError>
  /** Rows after `afterLine` in these states, in line order, for an explicit retry; none that is in conflict or waits for a person. */
  readonly unpaid: (runId: string, states: ReadonlyArray<UnpaidRow["state"]>, afterLine: number, limit: number) => Effect.Effect<ReadonlyArray<UnpaidRow>, LedgerError>
  /** The last line of the run's rows; 0 where it has none. */
  readonly lastLine: (runId: string) => Effect.Effect<number, LedgerError>
  /**
   * Puts the rows of an unplanned run behind those of this one, without those whose identity it has, and forgets that run.
   * Answers how many were put; they become obligations by `plan`.
   */
  readonly absorb: (runId: string, unplannedRunId: string) => Effect.Effect<number, LedgerError>
  /** Closes the book of the run. */
  readonly finish: (runId: string, state: "finished" | "stopped") => Effect.Effect<void, LedgerError>
}>()("@purser/core/RunLedger") {
  /** A run book in memory, over the memory ledger. */
  static readonly layerMemory: Layer.Layer<RunLedger, never, Ledger> = Layer.effect(RunLedger, makeRunLedgerMemory)
}
