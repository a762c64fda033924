/**
 * The contract of the workers' book: who serves, and when each was last heard of.
 *
 * Nothing is decided by it. Whether a charge may be taken over is the lease's affair, and a worker that cannot write its
 * beat works on.
 */
import { Context, type Effect } from "effect"
import type { LedgerError } from "./LedgerError.ts"

/** How a worker introduces itself. */
export interface WorkerSelf {
  /** The name in leases and on the event trail. */
  readonly worker: string
  readonly host: string
  readonly pid: number
  /** What it does, in a word or two: the transport, or the run. */
  readonly serves: string
  readonly version: string
}

/** One worker. Times on the store's clock; one that holds charges and never introduced itself has no beat. */
export interface WorkerLine {
  readonly worker: string
  readonly host: string | null
  readonly pid: number | null
  readonly serves: string | null
  readonly version: string | null
  readonly startedAtMs: number | null
  readonly beatAtMs: number | null
  readonly stoppedAtMs: number | null
  /** Charges that it holds a running lease of. */
  readonly inFlight: number
  /** Charges that it settled within the last minute, as far back as the newest events reach. */
  readonly settledLastMinute: number
  readonly takenOverLastMinute: number
}

/** The book. Every method needs nothing and fails with `LedgerError` only. */
export class WorkerBook extends Context.Service<WorkerBook, {
  /** Notes that this worker lives; one that is new drops those that were not heard of for a day. */
  readonly beat: (self: WorkerSelf) => Effect.Effect<void, LedgerError>
  /** Notes that it ends by itself. */
  readonly leave: (worker: string) => Effect.Effect<void, LedgerError>
  /** All workers of the last day, and the store's time. */
  readonly list: Effect.Effect<{ readonly workers: ReadonlyArray<WorkerLine>; readonly atMs: number }, LedgerError>
}>()("@purser/core/WorkerBook") {}
