/** Why rows of a run are in conflict: what each asks for, and what the ledger holds for its identity. */
import { RunLedger } from "@purser/core"
import { Effect } from "effect"
import { note } from "../ui/Output.ts"
import { conflictText } from "./reportFile.ts"

const shownConflicts = 20

/** Names rows whose identity the ledger knows with other terms; a report has all of them. */
export const showConflicts = Effect.fnUntraced(function*(runId: string) {
  const book = yield* RunLedger
  let shown = 0
  let afterLine = 0
  for (;;) {
    const rows = yield* book.report(runId, afterLine, 2000)
    for (const row of rows) {
      if (row.state !== "conflict" || shown++ >= shownConflicts) continue
      yield* note(`line ${row.line}: conflict, not charged: ${yield* conflictText(row)}`)
    }
    if (rows.length < 2000) break
    afterLine = rows[rows.length - 1]!.line
  }
  if (shown > shownConflicts) yield* note(`… and ${shown - shownConflicts} more conflicts`)
})
