/**
 * Moves the clock that Purser's SQL reads, `purser.now()`, for tests of leases, retries and retention.
 *
 * The offset lives in the text of the function itself: a database that nobody moved has none and pays nothing. It is
 * for tests only; whoever may replace the function could also change the tables.
 */
import { Duration, Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"

const NowRow = Schema.Struct({ nowMs: Schema.Finite })
const OffsetRow = Schema.Struct({ offsetMs: Schema.Finite })

/** The database's time in ms since 1970. */
export const nowMs = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const ask = SqlSchema.findOne({
    Request: Schema.Void,
    Result: NowRow,
    execute: () => sql`select extract(epoch from purser.now())::float8 * 1000 as "nowMs"`
  })
  return (yield* ask(undefined)).nowMs
})

const replace = Effect.fnUntraced(function*(nextMs: (offsetMs: number) => number) {
  const sql = yield* SqlClient.SqlClient
  const ask = SqlSchema.findOne({
    Request: Schema.Void,
    Result: OffsetRow,
    // A connection hears that a function was replaced when it locks a table. Without one here, the plan of a statement
    // prepared before another's move would answer with the offset of that time.
    execute: () => sql`select round(extract(epoch from purser.now() - statement_timestamp()) * 1000)::float8 as "offsetMs"
      from pg_catalog.pg_proc where oid = 'purser.now()'::regprocedure`
  })
  yield* sql.withTransaction(Effect.gen(function*() {
    yield* sql`select pg_advisory_xact_lock(hashtext('purser.now'))`
    const offsetMs = Math.round(nextMs((yield* ask(undefined)).offsetMs))
    const shift = offsetMs === 0 ? "" : ` + interval '${offsetMs} milliseconds'`
    yield* sql`create or replace function purser.now() returns timestamptz language sql stable parallel safe
      return statement_timestamp()${sql.literal(shift)}`
  }))
})

/** Moves the clock forward (or back, by a negative duration) for every connection, from its next transaction on. */
export const advance = (duration: Duration.Input) => replace((offsetMs) => offsetMs + Duration.toMillis(duration))

/** Back to the real time. */
export const reset = replace(() => 0)
