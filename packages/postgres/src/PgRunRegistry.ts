/** The register of runs, their stash and the schedules on PostgreSQL (or PGlite). */
import { Currency, type NewRun, type RunEvent, type RunRecord, RunRegistry, type RunSchedule, RunSchedules, RunStash, runStandings, RunState, type RunStateTotal } from "@purser/core"
import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { decodeRows, StateColumn } from "./internal/chargeRow.ts"
import { ledgerUnavailable, retryRolledBack } from "./internal/failures.ts"
import { boolean, integer, text, texts } from "./internal/params.ts"
import * as Sql from "./internal/registrySql.ts"
import { asker, sender } from "./internal/storeQuery.ts"

const NullText = Schema.NullOr(Schema.String)
const Json = Schema.fromJsonString(Schema.Unknown)
const Counted = Schema.fromJsonString(Schema.Array(Schema.Struct({
  currency: Currency,
  state: Schema.Union([StateColumn, Schema.Literals(["conflict", "quarantined", "staged"])]),
  rows: Schema.Int,
  amountMinor: Schema.BigIntFromString,
  receivedMinor: Schema.BigIntFromString,
  settledBefore: Schema.Int
})))
const encodeCounted = Schema.encodeSync(Counted)
const encodeJson = Schema.encodeSync(Json)

const RunRow = Schema.Struct({
  run_id: Schema.String,
  name: Schema.String,
  state: RunState,
  definition: Schema.String,
  params: Json,
  options: Json,
  round: Schema.Int,
  pauses: Schema.Int,
  runner: NullText,
  step: NullText,
  detail: NullText,
  counted: Counted,
  actor: Schema.String,
  created_at_ms: Schema.Finite,
  started_at_ms: Schema.NullOr(Schema.Finite),
  ended_at_ms: Schema.NullOr(Schema.Finite),
  lost_since_ms: Schema.NullOr(Schema.Finite)
})
const StandingRow = Schema.Struct({ standing: Schema.Literals(runStandings), runs: Schema.Int })
const EventRow = Schema.Struct({ at_ms: Schema.Finite, act: Schema.Union([RunState, Schema.Literals(["taken", "extended"])]), actor: Schema.String, detail: NullText })
const BodyRow = Schema.Struct({ body: Schema.String })
const NameRow = Schema.Struct({ name: Schema.String })
const ScheduleRow = Schema.Struct({
  name: Schema.String, cron: Schema.String, zone: Schema.String, definition: Schema.String, params: Json, options: Json, actor: Schema.String
})

const recordOf = ({ created_at_ms, ended_at_ms, lost_since_ms, run_id, started_at_ms, ...row }: typeof RunRow.Type): RunRecord => ({
  ...row, runId: run_id, createdAtMs: created_at_ms, startedAtMs: started_at_ms, endedAtMs: ended_at_ms, lostSinceMs: lost_since_ms
})
const jsonOf = (value: unknown) => text(encodeJson(value ?? null))
const countedOf = (counted: ReadonlyArray<RunStateTotal> | undefined) => text(counted === undefined ? null : encodeCounted(counted))

const makeRegistry = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const ask = asker(sql)
  const send = sender(sql)
  const one = (operation: string, statement: string, params: ReadonlyArray<unknown>) =>
    Effect.map(ask(operation, statement, params, RunRow), ([row]): RunRecord | undefined => row === undefined ? undefined : recordOf(row))
  const find = (nameOrId: string) => one("find run", Sql.find, [text(nameOrId)])

  const newRow = (run: NewRun) => [
    text(run.runId), text(run.name), text(run.state), text(run.definition), jsonOf(run.params), jsonOf(run.options), text(run.actor), text(run.runner ?? null)
  ]
  const rowOf = (statement: string, params: ReadonlyArray<unknown>) => Effect.map(Effect.flatMap(sql.unsafe(statement, params), decodeRows(RunRow)), ([row]) => row)

  /** The run that has the digest in hand, or this one; undefined where its name is given. */
  const registerAlone = (digest: string, run: NewRun) =>
    retryRolledBack(sql.withTransaction(Effect.gen(function*() {
      yield* sql.unsafe(Sql.lockDigest, [text(digest)])
      const held = yield* rowOf(Sql.inHand, [text(digest)])
      const row = held ?? (yield* rowOf(Sql.register, newRow({ ...run, params: { ...run.params as object, digest } })))
      return row === undefined ? undefined : { run: recordOf(row), isNew: held === undefined }
    }))).pipe(Effect.mapError(ledgerUnavailable("register run")))

  return RunRegistry.of({
    register: Effect.fnUntraced(function*(run) {
      for (;;) {
        const alone = run.digest === undefined ? undefined : yield* registerAlone(run.digest, run)
        if (alone !== undefined) return alone
        const made = run.digest === undefined ? yield* one("register run", Sql.register, newRow(run)) : undefined
        if (made !== undefined) return { run: made, isNew: true }
        const known = yield* find(run.name)
        // Between the two statements it may have been pruned.
        if (known !== undefined) return { run: known, isNew: false }
      }
    }),
    find,
    list: ({ limit, states }) =>
      Effect.map(ask("list runs", Sql.list, [states === undefined ? null : texts(states), integer(limit)], RunRow), (rows) => rows.map(recordOf)),
    standings: Effect.map(ask("count runs", Sql.standings, [], StandingRow), (rows) =>
      Object.fromEntries(rows.map(({ runs, standing }) => [standing, runs]))),
    change: ({ actor, detail, from, runId, to }) =>
      one("change run", Sql.change, [text(runId), texts(from), text(to), text(actor), text(detail ?? null), boolean(detail !== undefined)]),
    extend: ({ actor, params, runId }) => one("extend run", Sql.extend, [text(runId), jsonOf(params), text(actor)]),
    note: (runId, { counted, detail, runner, step }) =>
      send("note run", Sql.note, [
        text(runId), text(runner ?? null), text(step ?? null), text(detail ?? null), boolean(detail !== undefined), countedOf(counted)
      ]),
    events: (runId) =>
      Effect.map(ask("list events of run", Sql.events, [text(runId)], EventRow), (rows) =>
        rows.map(({ at_ms, ...row }): RunEvent => ({ ...row, atMs: at_ms })))
  })
})

const makeStash = Effect.map(SqlClient.SqlClient, (sql) => {
  const ask = asker(sql)
  const send = sender(sql)
  return RunStash.of({
    put: ({ round, runId, stage }, chunk, body) =>
      send("stash chunk", Sql.put, [text(runId), integer(round), integer(stage), integer(chunk), text(body)]),
    get: ({ round, runId, stage }, chunk) =>
      Effect.map(ask("read stash", Sql.get, [text(runId), integer(round), integer(stage), integer(chunk)], BodyRow), ([row]) => row?.body),
    cut: ({ round, runId, stage }, fromChunk) => send("cut stash", Sql.cut, [text(runId), integer(round), integer(stage), integer(fromChunk)]),
    drop: (runId) => send("drop stash", Sql.drop, [text(runId)])
  })
})

const makeSchedules = Effect.map(SqlClient.SqlClient, (sql) => {
  const ask = asker(sql)
  const send = sender(sql)
  return RunSchedules.of({
    put: (one) =>
      send("put schedule", Sql.putSchedule, [
        text(one.name), text(one.cron), text(one.zone), text(one.definition), jsonOf(one.params), jsonOf(one.options), text(one.actor)
      ]),
    remove: (name) => Effect.map(ask("remove schedule", Sql.removeSchedule, [text(name)], NameRow), (rows) => rows.length > 0),
    list: Effect.map(ask("list schedules", Sql.schedules, [], ScheduleRow), (rows): ReadonlyArray<RunSchedule> => rows)
  })
})

/** The register's layer. */
export const PgRunRegistry: {
  /** The register, the stash and the schedules on the tables of `Migrations`. */
  readonly layer: Layer.Layer<RunRegistry | RunStash | RunSchedules, never, SqlClient.SqlClient>
} = {
  layer: Layer.mergeAll(Layer.effect(RunRegistry, makeRegistry), Layer.effect(RunStash, makeStash), Layer.effect(RunSchedules, makeSchedules))
}
