/**
 * The register of runs with its trail, the stash of their stages, and the schedules. Small tables: a row for a run, a handful
 * of events for each, and chunks that are gone when the run is over.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const states = `'waiting', 'planned', 'running', 'paused', 'canceling', 'canceled', 'finished', 'failed'`

const statements: ReadonlyArray<string> = [
  `create table purser.run_registry (
    run_id text primary key,
    name text not null unique,
    state text not null check (state in (${states})),
    definition text not null,
    params jsonb not null,
    options jsonb not null,
    round integer not null default 1 check (round > 0),
    pauses integer not null default 0 check (pauses >= 0),
    runner text,
    step text,
    detail text,
    counted jsonb not null default '[]',
    actor text not null,
    created_at timestamptz not null,
    started_at timestamptz,
    ended_at timestamptz
  )`,
  `create index run_registry_created on purser.run_registry (created_at)`,
  `create table purser.run_events (
    position bigint generated always as identity primary key,
    run_id text not null,
    at timestamptz not null,
    act text not null,
    actor text not null,
    detail text
  )`,
  `create index run_events_run on purser.run_events (run_id, position)`,
  `create table purser.run_stash (
    run_id text not null,
    round integer not null,
    stage integer not null,
    chunk integer not null,
    body text not null,
    primary key (run_id, round, stage, chunk)
  )`,
  `create table purser.run_schedules (
    name text primary key,
    cron text not null,
    zone text not null,
    definition text not null,
    params jsonb not null,
    options jsonb not null,
    actor text not null,
    put_at timestamptz not null
  )`
]

/** Applies the migration. */
export default Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
