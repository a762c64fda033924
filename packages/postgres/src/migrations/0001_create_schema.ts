/**
 * The schema of Purser's tables, and the clock that its statements read.
 *
 * `purser.now()` is the time at which the statement began: one value for all rows of a batch, usable in index
 * conditions. Being a plain SQL function it is inlined, so it costs no more than `statement_timestamp()`. Tests move
 * it by replacing the function (`DatabaseClock`), so production has no offset to read.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create schema if not exists purser`
  yield* sql`create function purser.now() returns timestamptz language sql stable parallel safe
    return statement_timestamp()`
})
