/** How the database would carry out a statement. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const textOf = (plan: ReadonlyArray<object>) => plan.map((row) => Object.values(row).join("")).join("\n")

/** The plan for these parameters. */
export const planOf = Effect.fnUntraced(function*(statement: string, params: ReadonlyArray<unknown>) {
  const sql = yield* SqlClient.SqlClient
  return textOf(yield* sql.unsafe<object>(`explain ${statement}`, params))
})

/** The plan that a prepared statement keeps for all parameters; `operation` is its name for the moment. */
export const genericPlanOf = Effect.fnUntraced(function*(operation: string, statement: string, params: ReadonlyArray<unknown>) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql.withTransaction(Effect.gen(function*() {
    yield* sql.unsafe("set local plan_cache_mode = force_generic_plan")
    yield* sql.unsafe(`prepare ${operation} as ${statement}`).unprepared
    return textOf(yield* sql.unsafe<object>(`explain execute ${operation}(${params.map(() => "null").join(", ")})`).unprepared)
  }))
})

interface Reads {
  /** From end to end. */
  readonly whole: number
  /** By an index. */
  readonly looks: number
}

/** How often the table is read by what happens in the transaction of this act, also inside of functions, whose statements are in no plan. */
export const readsOf = Effect.fnUntraced(function*<A, E, R>(table: string, act: Effect.Effect<A, E, R>) {
  const sql = yield* SqlClient.SqlClient
  // Of the connection, since it last told the server: what it did before is in it.
  const count = Effect.map(
    sql.unsafe<Reads>("select seq_scan::float8 as whole, idx_scan::float8 as looks from pg_stat_xact_user_tables where schemaname = 'purser' and relname = $1", [table]),
    ([reads]) => reads ?? { whole: 0, looks: 0 }
  )
  return yield* sql.withTransaction(Effect.gen(function*() {
    const before = yield* count
    yield* act
    const after = yield* count
    return { whole: after.whole - before.whole, looks: after.looks - before.looks }
  }))
})
