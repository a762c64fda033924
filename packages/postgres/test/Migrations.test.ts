import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import * as DatabaseClock from "../src/DatabaseClock.ts"
import * as Migrations from "../src/Migrations.ts"
import * as TestDatabase from "../src/TestDatabase.ts"

const createTable = (name: string) =>
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    yield* sql`create table ${sql(name)} (id integer)`
  })

const first: Migrations.MigrationRecord = { "0001_create_a": createTable("a") }
const second: Migrations.MigrationRecord = { ...first, "0002_create_b": createTable("b") }

const fresh = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  yield* sql`drop schema if exists purser cascade`
  yield* sql`drop table if exists a, b`
  return sql
})

const tables = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ name: string }>`select relname::text as name from pg_class where relname in ('a', 'b') order by 1`
  return rows.map(({ name }) => name)
})

for (const [name, database] of TestDatabase.layersEmpty) {
  layer(database, { timeout: 60_000 })(`Migrations on ${name}`, (it) => {
    it.effect("applies what is missing, in order, and answers it", () =>
      Effect.gen(function*() {
        yield* fresh
        assert.strictEqual(yield* Migrations.schemaVersion, 0)
        assert.deepStrictEqual(yield* Migrations.run(first), [{ version: 1, name: "create_a" }])
        assert.deepStrictEqual(yield* Migrations.run(second), [{ version: 2, name: "create_b" }])
        assert.deepStrictEqual(yield* Migrations.run(second), [])
        assert.strictEqual(yield* Migrations.schemaVersion, 2)
        assert.deepStrictEqual(yield* tables, ["a", "b"])
      }))

    it.effect("runs each migration once when 8 start together", () =>
      Effect.gen(function*() {
        for (let round = 0; round < 5; round++) {
          yield* fresh
          const runs = yield* Effect.forEach(Array.from({ length: 8 }), () => Migrations.run(second), { concurrency: "unbounded" })
          assert.deepStrictEqual(runs.map((applied) => applied.length).sort(), [0, 0, 0, 0, 0, 0, 0, 2])
        }
        assert.deepStrictEqual(yield* tables, ["a", "b"])
      }))

    it.effect("leaves nothing of a run that fails", () =>
      Effect.gen(function*() {
        yield* fresh
        const error = yield* Effect.flip(Migrations.run({ ...first, "0002_break": createTable("a") }))
        assert.strictEqual(error._tag, "MigrationFailed")
        assert.match(error.message, /migration 2 \(break\) failed: relation "a" already exists/)
        assert.deepStrictEqual(yield* tables, [])
        assert.strictEqual(yield* Migrations.schemaVersion, 0)
      }))

    it.effect("refuses a database that is newer than the code, and one with another history", () =>
      Effect.gen(function*() {
        yield* fresh
        yield* Migrations.run(second)
        const newer = yield* Effect.flip(Migrations.run(first))
        assert.strictEqual(newer._tag, "SchemaTooNew")
        assert.match(newer.message, /schema version 2, this version of Purser knows 1/)
        const other = yield* Effect.flip(Migrations.run({ "0001_create_c": createTable("c"), "0002_create_b": createTable("b") }))
        assert.strictEqual(other._tag, "SchemaDiffers")
      }))

    it.effect("brings Purser's own schema, whose clock is the statement's time until a test moves it", () =>
      Effect.gen(function*() {
        const sql = yield* fresh
        yield* Migrations.run()
        const behindMs = sql<{ ms: number }>`select round(extract(epoch from purser.now() - statement_timestamp()) * 1000)::int as ms`
        assert.deepStrictEqual(yield* behindMs, [{ ms: 0 }])
        yield* DatabaseClock.advance("25 hours")
        yield* DatabaseClock.advance("1 hour")
        // Every connection sees it, also those that have prepared the statement before.
        const seen = yield* Effect.forEach(Array.from({ length: 12 }), () => behindMs, { concurrency: "unbounded" })
        assert.deepStrictEqual(seen.flat(), Array.from({ length: 12 }, () => ({ ms: 26 * 3_600_000 })))
        yield* Effect.forEach(Array.from({ length: 5 }), () => DatabaseClock.advance("-1 hours"), { concurrency: "unbounded" })
        assert.deepStrictEqual(yield* behindMs, [{ ms: 21 * 3_600_000 }])
        yield* DatabaseClock.reset
        assert.deepStrictEqual(yield* behindMs, [{ ms: 0 }])
      }))

    it.effect("has a clock that an index can be searched by, and that moves on between statements of a transaction", () =>
      Effect.gen(function*() {
        const sql = yield* fresh
        yield* Migrations.run()
        yield* sql.withTransaction(Effect.gen(function*() {
          yield* sql`create table purser.due (at timestamptz)`
          yield* sql`create index due_at on purser.due (at)`
          yield* sql`set local enable_seqscan = off`
          const plan = yield* sql<{ "QUERY PLAN": string }>`explain select * from purser.due where at < purser.now()`
          assert.match(plan.map((line) => line["QUERY PLAN"]).join("\n"), /Index Cond: \(at < statement_timestamp\(\)\)/)
          const before = yield* DatabaseClock.nowMs
          yield* sql`select pg_sleep(0.01)`
          assert.isAbove(yield* DatabaseClock.nowMs, before)
        }))
      }))
  })
}
