/**
 * Statistics for a table that grows from nothing. A prepared plan is kept until the table is analysed; one that was made
 * for a nearly empty table may scan it from end to end, and embedded PGlite has no autovacuum that would ever ask again.
 * So the table is analysed each time this process has made it ten times larger.
 */
import { Effect, type Scope } from "effect"
import type { SqlClient } from "effect/sql"

/** Counts new rows and analyses in the background. */
export const makeGrowth = Effect.fnUntraced(function*(sql: SqlClient.SqlClient): Effect.fn.Return<
  { readonly add: (rows: number) => Effect.Effect<void> },
  never,
  Scope.Scope
> {
  const scope = yield* Effect.scope
  let added = 0
  let next = 256
  const analyze = Effect.ignore(sql.unsafe("analyze purser.charges"))
  return {
    add: (rows) =>
      Effect.suspend(() => {
        added += rows
        if (added < next) return Effect.void
        next = added * 10
        return Effect.asVoid(Effect.forkIn(analyze, scope))
      })
  }
})
