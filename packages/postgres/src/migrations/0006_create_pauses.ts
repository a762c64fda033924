/** The switch that stops all charging: a row for each pause in force, and a trail of who threw it and why. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements: ReadonlyArray<string> = [
  `create table purser.pauses (
    cause text primary key check (cause in ('person', 'outage')),
    actor text not null,
    reason text not null,
    since timestamptz not null
  )`,
  `create table purser.pause_events (
    position bigint generated always as identity primary key,
    at timestamptz not null,
    cause text not null,
    act text not null check (act in ('paused', 'resumed')),
    actor text not null,
    reason text not null
  )`,
  `create trigger pause_events_append_only before update or delete or truncate on purser.pause_events
    for each statement execute function purser.refuse_change()`
]

/** Applies the migration. */
export default Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
