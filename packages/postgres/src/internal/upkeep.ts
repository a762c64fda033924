/**
 * What a ledger's process does beside its claims, in the background; where it fails, the next one tries again.
 *
 * Statistics: a prepared plan is kept until the table is analysed; one that was made for a nearly empty table may scan it from
 * end to end, and embedded PGlite has no autovacuum that would ever ask again. So the table is analysed each time this process
 * has made it ten times larger.
 *
 * Lease pages: the sweeper turns those that are due, whenever it comes; so that they stay few at any rate, and where no sweeper
 * runs, who claims turns them too.
 */
import { Effect, Schema, type Scope } from "effect"
import type { SqlClient } from "effect/sql"
import { decodeRows } from "./chargeRow.ts"
import { retryRolledBack, type StoreFailure } from "./failures.ts"
import { turnPages } from "./leasePages.ts"
import { integer } from "./params.ts"
import { analyze } from "./runSql.ts"

/** Pages that one statement turns: some thousand charges. */
const pagesMax = 16
/** Claims after which a process turns what is due. */
const claimsPerTurn = 4096
/** Claims before the first statistics. */
const analyzeFrom = 256

const decodeTurned = decodeRows(Schema.Struct({ turned: Schema.Int }))

/** Turns the pages that are due, until none is. */
export const turnAll = (sql: SqlClient.SqlClient): Effect.Effect<void, StoreFailure> => {
  const turn = retryRolledBack(Effect.flatMap(sql.unsafe(turnPages, [integer(pagesMax)]), decodeTurned))
  return Effect.asVoid(Effect.repeat(turn, { while: ([row]) => row?.turned === pagesMax }))
}

/** Is told of new claims. */
export const makeUpkeep = Effect.fnUntraced(function*(sql: SqlClient.SqlClient): Effect.fn.Return<
  { readonly claimed: (rows: number) => Effect.Effect<void> },
  never,
  Scope.Scope
> {
  const scope = yield* Effect.scope
  let claimed = 0
  let nextAnalyze = analyzeFrom
  let nextTurn = claimsPerTurn
  let turning = false
  const analyzeCharges = Effect.ignore(sql.withTransaction(Effect.forEach(analyze("charges"), (statement) => sql.unsafe(statement), { discard: true })))
  const turnDue = Effect.ensuring(Effect.ignore(turnAll(sql)), Effect.sync(() => turning = false))
  return {
    claimed: (rows) =>
      Effect.suspend(() => {
        claimed += rows
        const due: Array<Effect.Effect<void>> = []
        if (claimed >= nextAnalyze) {
          nextAnalyze = claimed * 10
          due.push(analyzeCharges)
        }
        if (claimed >= nextTurn && !turning) {
          nextTurn = claimed + claimsPerTurn
          turning = true
          due.push(turnDue)
        }
        return due.length === 0 ? Effect.void : Effect.forEach(due, (effect) => Effect.forkIn(effect, scope), { discard: true })
      })
  }
})
