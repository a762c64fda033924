/**
 * The contract of looking at billing runs from outside: which there are, how each stands, and how it came there.
 *
 * It changes nothing. One look at a run reads all of its rows, so that callers keep the answer for a while where a run
 * is large.
 */
import { Context, type Effect } from "effect"
import type { ChargeKey } from "./ChargeKey.ts"
import type { LedgerError } from "./LedgerError.ts"
import type { RunRowReport } from "./RunLedger.ts"

/** One run. Times on the store's clock. */
export interface RunLine {
  readonly runId: string
  readonly source: string
  /** The word of the run book, for example `staging`, `planned`, `finished`, `stopped`. */
  readonly state: string
  readonly begunAtMs: number
  readonly plannedAtMs: number | null
  readonly finishedAtMs: number | null
  readonly rows: number
  /** Rows whose charge the ledger knew before. */
  readonly present: number
}

/** Rows of one namespace, period, currency and state. Sums in minor units. */
export interface RunGroup {
  readonly namespace: string
  readonly billingPeriod: string
  readonly currency: string
  readonly state: RunRowReport["state"]
  readonly rows: number
  readonly amountMinor: bigint
  readonly receivedMinor: bigint
  readonly settledBefore: number
  /** Rows that settled within the last minute, or since the moment that was asked for where that is later. */
  readonly settledLastMinute: number
}

/** How many rows stood where at the end of one slice of the run's time. */
export interface RunSlice {
  readonly atMs: number
  readonly waiting: number
  readonly inWork: number
  /** Rows that are past that, by the state in which they stand now. */
  readonly past: Readonly<Partial<Record<RunRowReport["state"], number>>>
}

/** A run that has a charge among its rows, and who began it. */
export interface RunOfCharge {
  readonly runId: string
  readonly line: number
  readonly source: string
  /** The register's name and whoever started it; null where the register does not know the run. */
  readonly name: string | null
  readonly actor: string | null
  readonly begunAtMs: number
  readonly plannedAtMs: number | null
}

/** A run with its numbers. */
export interface RunView {
  readonly run: RunLine
  readonly groups: ReadonlyArray<RunGroup>
  /** Equal slices from the plan until now, or until the run's end. */
  readonly slices: ReadonlyArray<RunSlice>
  /** When the first row was claimed, and when one was claimed or settled last; null before. */
  readonly firstClaimedAtMs: number | null
  readonly lastMovedAtMs: number | null
  /** When this was read. */
  readonly atMs: number
}

/** The statistics. Every method needs nothing and fails with `LedgerError` only. */
export class RunStats extends Context.Service<RunStats, {
  /** Runs, the newest first; `before` is the beginning of the last one that the caller has. `only`: of these alone. */
  readonly list: (before: number | null, limit: number, only?: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<RunLine>, LedgerError>
  /** One run, in so many slices of time. `sinceMs`: what settled before is not of the last minute. */
  readonly view: (runId: string, slices: number, sinceMs?: number) => Effect.Effect<RunView | undefined, LedgerError>
  /** The runs that have a charge among their rows, in the order of their beginning. */
  readonly runsOf: (chargeKey: ChargeKey, limit: number) => Effect.Effect<ReadonlyArray<RunOfCharge>, LedgerError>
}>()("@purser/core/RunStats") {}
