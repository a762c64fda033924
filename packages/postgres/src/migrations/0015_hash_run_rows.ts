/**
 * The runs that a charge is a row of are looked up by its whole key and never in order, and rows are staged in the order of their
 * lines: each went to another page of the index of keys, which took more than the rest of the row. In buckets it takes less than half.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements: ReadonlyArray<string> = [
  `drop index purser.run_rows_charge`,
  `create index run_rows_charge on purser.run_rows using hash (charge_key)`
]

/** Applies the migration. */
export default Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
