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
