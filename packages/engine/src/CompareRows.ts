/** Rows that somebody hands in again, beside those that a run has. */
import { type ChargeTerms, chargeTerms, type LedgerError, RunLedger, type RunRow } from "@purser/core"
import { Effect, Stream } from "effect"
import { rowsInBook } from "./internal/rowsInBook.ts"

/** Lines of the rows handed in. */
export interface RowDifferences {
  /** Whose identity the run does not have. */
  readonly late: ReadonlyArray<number>
  /** Which the run has with another amount, currency, Stripe customer or payment method. */
  readonly changed: ReadonlyArray<number>
}

const same = (a: ChargeTerms, b: ChargeTerms) =>
  a.amountMinor === b.amountMinor && a.currency === b.currency && a.stripeCustomerId === b.stripeCustomerId && a.paymentMethod === b.paymentMethod

/** Compares chunks of rows with those of a run, chunk by chunk. */
export const compareRows = Effect.fn("compareRows")(function*<E, R>(
  runId: string,
  rows: Stream.Stream<ReadonlyArray<RunRow>, E, R>
): Effect.fn.Return<RowDifferences, E | LedgerError, R | RunLedger> {
  const book = yield* RunLedger
  const late: Array<number> = []
  const changed: Array<number> = []
  yield* Stream.runForEach(rows, (chunk) =>
    Effect.map(book.termsOf(runId, chunk.map(({ chargeKey }) => chargeKey)), (known) => {
      for (const { chargeKey, line, request } of chunk) {
        const before = known.get(chargeKey)
        if (before === undefined) late.push(line)
        else if (!same(before, chargeTerms(request))) changed.push(line)
      }
    }))
  return { late, changed }
})

/** The same with rows that were planned under another id, as those of a run that found its name taken when it was to begin. */
export const comparePlanned = (runId: string, plannedAs: string): Effect.Effect<RowDifferences, LedgerError, RunLedger> => compareRows(runId, rowsInBook(plannedAs))
