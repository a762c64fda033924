/** The rows of a run as the book has them, page by page. */
import { type LedgerError, RunLedger, type RunRowReport } from "@purser/core"
import { Effect, Option, Stream } from "effect"

const page = 5000

/** In line order; also those that are staged and not planned yet. */
export const rowsInBook = (runId: string): Stream.Stream<ReadonlyArray<RunRowReport>, LedgerError, RunLedger> =>
  Stream.unwrap(Effect.map(RunLedger, (book) =>
    Stream.paginate(0, (after) =>
      Effect.map(book.report(runId, after, page), (found) =>
        [[found], found.length < page ? Option.none<number>() : Option.some(found[found.length - 1]!.line)] as const))))
