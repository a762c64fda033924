/** What it takes to dispatch a planned run, and how far a dispatch is. It sends nothing itself (see `BillingRun`). */
import type { ChargeOutcome, RunStateTotal } from "@purser/core"
import type { Effect, Ref, Semaphore } from "effect"

/** Ends a dispatch softly: nothing more is sent, and what was sent is waited for. */
export interface DispatchStop {
  readonly isStopped: () => boolean
  readonly whenStopped: Effect.Effect<void>
}

/** Which planned run, with how many requests in flight, and where its progress is to be kept. */
export interface DispatchInput {
  readonly runId: string
  readonly concurrency: number
  readonly progress?: Ref.Ref<RunProgress>
  readonly stop?: DispatchStop
}

/** Which lines of which run. Parts of a run that are dispatched side by side share the gate, which bounds their requests in flight. */
export interface DispatchLines {
  readonly runId: string
  readonly afterLine: number
  readonly throughLine: number
  readonly gate: Semaphore.Semaphore
  readonly stop?: DispatchStop
}

/** How far a dispatch is; counts of rows. */
export interface RunProgress {
  readonly submitted: number
  readonly outcomes: Readonly<Record<ChargeOutcome["_tag"] | "error", number>>
  readonly lastError: string | undefined
}

/** A dispatch that has not begun. */
export const noProgress: RunProgress = {
  submitted: 0,
  outcomes: { Succeeded: 0, Declined: 0, Processing: 0, RequiresAction: 0, Rejected: 0, Canceled: 0, error: 0 },
  lastError: undefined
}

/** Whether rows in this state are still to be charged. */
export const isRowOpen = ({ state }: Pick<RunStateTotal, "state">): boolean => state === "planned" || state === "claimed" || state === "attached"

/** Rows of a run that are still to be charged. */
export const openRows = (summary: ReadonlyArray<RunStateTotal>): number =>
  summary.filter(isRowOpen).reduce((sum, total) => sum + total.rows, 0)
