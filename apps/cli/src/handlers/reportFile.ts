/** The report file of a run: one line per input row. */
import { Ledger, Money, RunLedger, type RunRowReport } from "@purser/core"
import { Effect, FileSystem } from "effect"
import { refused } from "../CommandFailed.ts"
import { checkWhole, openWhole } from "../ui/WholeFile.ts"
import { isReadOnce } from "./fileDigest.ts"
import { type RefusedRow, refusedLine, reportHeader, reportLine } from "./runReport.ts"

const page = 2000

/** Both sides of a conflict, in words: what the row asks for and what the ledger holds for its identity. */
export const conflictText = Effect.fnUntraced(function*(row: RunRowReport) {
  const held = yield* (yield* Ledger).find(row.chargeKey)
  if (held === undefined) return row.detail ?? ""
  const terms = ({ amountMinor, currency, paymentMethod, stripeCustomerId }: RunRowReport["request"]) =>
    `${Money.formatMinor(amountMinor, currency)} ${currency} of ${stripeCustomerId} with ${paymentMethod ?? "the default payment method"}`
  return `the ledger holds ${terms(held.request)} (${held.state}); this row asks for ${terms(row.request)}`
})

/** What a report adds to the book. */
export interface ReportNotes {
  readonly refusals: ReadonlyArray<RefusedRow>
  /** Charges that were settled before this run and tried again by it. */
  readonly retried: ReadonlySet<string>
}

/** Makes sure, before anything is charged, that the report can be written, and not over the file that it reports on. */
export const checkReport = Effect.fnUntraced(function*(path: string, file: string) {
  const fs = yield* FileSystem.FileSystem
  const real = (name: string) => Effect.orElseSucceed(fs.realPath(name), () => undefined)
  const target = yield* real(path)
  // Of standard input only a file counts: a terminal may well be read from and written to.
  const source = file === "-" && (yield* isReadOnce("/dev/stdin")) ? undefined : yield* real(file === "-" ? "/dev/stdin" : file)
  if (target !== undefined && target === source) {
    return yield* refused(`--report ${path} is the billing file itself: the report would take its place`)
  }
  yield* checkWhole("report", path)
})

/** Writes the report of a run. */
export const writeReport = Effect.fnUntraced(function*(path: string, runId: string, { refusals, retried }: ReportNotes) {
  const book = yield* RunLedger
  let next = 0
  const refusedBefore = (line: number) => {
    let text = ""
    while (next < refusals.length && refusals[next]!.line < line) text += refusedLine(refusals[next++]!)
    return text
  }
  const lineOf = Effect.fnUntraced(function*(row: RunRowReport) {
    const detail = row.state === "conflict" ? yield* conflictText(row) : row.detail
    return refusedBefore(row.line) + reportLine({ ...row, detail, settledBefore: row.settledBefore && !retried.has(row.chargeKey) })
  })
  yield* Effect.scoped(Effect.gen(function*() {
    const file = yield* openWhole("report", path)
    yield* file.write(reportHeader)
    let afterLine = 0
    for (;;) {
      const rows = yield* book.report(runId, afterLine, page)
      if (rows.length > 0) {
        yield* file.write((yield* Effect.forEach(rows, lineOf)).join(""))
        afterLine = rows[rows.length - 1]!.line
      }
      if (rows.length < page) break
    }
    yield* file.write(refusedBefore(Number.POSITIVE_INFINITY))
    // A report that is half written is never taken for one.
    yield* file.finish
  }))
})
