/** The messages that nobody could answer. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // One row for equal messages, so that a sender that repeats itself fills no table.
  `create table purser.dead_letters (
    digest bytea primary key,
    first_at timestamptz not null,
    last_at timestamptz not null,
    times bigint not null default 1 check (times > 0),
    transport text not null,
    principal text,
    reason text not null,
    detail text not null,
    size_bytes bigint not null check (size_bytes >= 0),
    body bytea not null
  )`,
  `create index dead_letters_last_at on purser.dead_letters (last_at)`
]

/** Applies the migration. */
export default Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
