/** Rows that somebody hands in again, beside those that a run has. */
import { type ChargeKey, type ChargeRequest, chargeTerms, type LedgerError, type RunLedger, type RunRow } from "@purser/core"
import { Effect, Stream } from "effect"
import { rowsInBook } from "./internal/rowsInBook.ts"

/** Lines of the rows handed in. */
export interface RowDifferences {
  /** Whose identity the run does not have. */
  readonly late: ReadonlyArray<number>
  /** Which the run has with another amount, currency, Stripe customer or payment method. */
  readonly changed: ReadonlyArray<number>
}

const textOf = (request: ChargeRequest) => JSON.stringify(chargeTerms(request))

/** Compares chunks of rows with those of a run; the run's terms are in memory meanwhile. */
export const compareRows = Effect.fn("compareRows")(function*<E, R>(
  runId: string,
  rows: Stream.Stream<ReadonlyArray<RunRow>, E, R>
): Effect.fn.Return<RowDifferences, E | LedgerError, R | RunLedger> {
  const known = new Map<ChargeKey, string>()
  yield* Stream.runForEach(rowsInBook(runId), (found) =>
    Effect.sync(() => {
      for (const { chargeKey, request } of found) known.set(chargeKey, textOf(request))
    }))
  const late: Array<number> = []
  const changed: Array<number> = []
  yield* Stream.runForEach(rows, (chunk) =>
    Effect.sync(() => {
      for (const { chargeKey, line, request } of chunk) {
        const before = known.get(chargeKey)
        if (before === undefined) late.push(line)
        else if (before !== textOf(request)) changed.push(line)
      }
    }))
  return { late, changed }
})

/** The same with rows that were planned under another id, as those of a run that found its name taken when it was to begin. */
export const comparePlanned = (runId: string, plannedAs: string): Effect.Effect<RowDifferences, LedgerError, RunLedger> => compareRows(runId, rowsInBook(plannedAs))
