/**
 * What a charge's story and the list of conflicts lacked: the runs that a charge is a row of, the calls to the processor that
 * were made for it, and requests that came over a transport with other terms. None of it is written by a step of a charge.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements: ReadonlyArray<string> = [
  `create index run_rows_charge on purser.run_rows (charge_key)`,

  // Conflicting requests stand beside those of runs, under an empty run id and a number of their own.
  `create sequence purser.request_conflicts as integer`,
  `alter table purser.run_conflicts add column principal text, add column times integer not null default 1, add column last_at timestamptz`,

  `create table purser.processor_calls (
    charge_key text collate "C" not null,
    at timestamptz not null,
    operation text not null,
    status text not null,
    request_id text,
    replayed boolean not null,
    elapsed_ms integer not null
  )`,
  `create index processor_calls_charge on purser.processor_calls using hash (charge_key)`,
  // Calls come in the order of time, so that a few pages stand for the whole table when old ones are forgotten.
  `create index processor_calls_at on purser.processor_calls using brin (at)`
]

/** Applies the migration. */
export default Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
