import { assert, layer } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Deferred, Effect, Exit, Fiber, Queue, Stream } from "effect"
import type { SqlError } from "effect/sql"
import { TestClock } from "effect/testing"
import { Database } from "../src/Database.ts"
import * as TestDatabase from "../src/TestDatabase.ts"

const table = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  yield* sql`drop table if exists item`
  yield* sql`create table item (id text primary key, state text not null default 'new', body text)`
  return sql
})

const count = Effect.fnUntraced(function*(sql: PgClient.PgClient, state: string) {
  const rows = yield* sql<{ n: number }>`select count(*)::int as n from item where state = ${state}`
  return rows[0]!.n
})

for (const [name, database] of TestDatabase.layersEmpty) {
  layer(database, { timeout: 60_000 })(`Database on ${name}`, (it) => {
    it.effect("says what it is", () =>
      Effect.gen(function*() {
        const { kind, label, version } = yield* Database
        const sql = yield* PgClient.PgClient
        assert.strictEqual(kind, name)
        assert.match(version, /^18\./)
        assert.notInclude(label, "@127.0.0.1:5432/postgres:")
        assert.strictEqual(sql.driver, name === "pglite" ? "pglite" : "pg")
        assert.strictEqual(sql.withoutTransforms().driver, sql.driver)
        assert.deepStrictEqual(yield* sql`select current_setting('TimeZone') as zone`, [{ zone: "UTC" }])
        // Spans name the server by these.
        if (kind === "postgres") {
          const at = new URL(label)
          assert.deepStrictEqual([sql.config.host, String(sql.config.port), sql.config.database], [at.hostname, at.port, at.pathname.slice(1)])
        } else assert.strictEqual(sql.config.host, "pglite")
      }))

    it.effect("keeps what a transaction wrote only when it commits, down to nested savepoints", () =>
      Effect.gen(function*() {
        const sql = yield* table
        yield* sql.withTransaction(Effect.gen(function*() {
          yield* sql`insert into item (id) values ('outer')`
          const inner = sql.withTransaction(Effect.andThen(sql`insert into item (id) values ('inner')`, Effect.fail("no")))
          assert.strictEqual(yield* Effect.flip(inner), "no")
          yield* sql.withTransaction(sql`insert into item (id) values ('second')`)
        }))
        const failing = sql.withTransaction(Effect.andThen(sql`insert into item (id) values ('lost')`, Effect.fail("no")))
        assert.isTrue(Exit.isFailure(yield* Effect.exit(failing)))
        assert.deepStrictEqual(yield* sql`select id from item order by id`, [{ id: "outer" }, { id: "second" }])
      }))

    it.effect("isolates 64 fibers that mix transactions and plain statements", () =>
      Effect.gen(function*() {
        const sql = yield* table
        const one = (index: number): Effect.Effect<unknown, SqlError.SqlError> => {
          const id = `k${index}`
          if (index % 3 !== 0) return sql`insert into item (id) values (${id})`
          return sql.withTransaction(Effect.gen(function*() {
            yield* sql`insert into item (id, state) values (${id}, 'open')`
            yield* TestClock.withLive(Effect.sleep("2 millis"))
            yield* sql`update item set state = 'done' where id = ${id}`
            if (index % 6 === 0) return yield* Effect.fail("rolled back")
          })).pipe(Effect.ignore)
        }
        yield* Effect.forEach(Array.from({ length: 64 }, (_, index) => index), one, { concurrency: "unbounded", discard: true })
        assert.strictEqual(yield* count(sql, "new"), 42)
        assert.strictEqual(yield* count(sql, "done"), 11)
        assert.strictEqual(yield* count(sql, "open"), 0)
      }))

    it.effect("fails only the statement that is wrong when many share a connection", () =>
      Effect.gen(function*() {
        const sql = yield* table
        yield* sql`insert into item (id) values ('taken')`
        const results = yield* Effect.forEach(
          Array.from({ length: 90 }, (_, index) => index),
          (index) => Effect.result(index % 3 === 0 ? sql`insert into item (id) values ('taken')` : sql`insert into item (id) values (${`n${index}`})`),
          { concurrency: "unbounded" }
        )
        const failures = results.flatMap((result) => result._tag === "Failure" ? [result.failure.reason._tag] : [])
        assert.deepStrictEqual(failures, Array.from({ length: 30 }, () => "UniqueViolation"))
        assert.strictEqual(yield* count(sql, "new"), 61)
      }))

    it.effect("reports a failed commit, and the connection is usable afterwards", () =>
      Effect.gen(function*() {
        const sql = yield* table
        const aborted = sql.withTransaction(
          Effect.andThen(Effect.ignore(sql`insert into absent values (1)`), sql`insert into item (id) values ('x')`)
        )
        assert.strictEqual((yield* Effect.flip(aborted))._tag, "SqlError")
        yield* sql`insert into item (id) values ('y')`
        assert.strictEqual(yield* count(sql, "new"), 1)
      }))

    it.effect("carries results and parameters of several megabytes", () =>
      Effect.gen(function*() {
        const sql = yield* table
        const body = "0123456789abcdef".repeat(60)
        const ids = Array.from({ length: 5_000 }, (_, index) => `id-${index}`)
        yield* sql`insert into item (id, body) select * from unnest(${ids}::text[], ${ids.map(() => body)}::text[])`
        const rows = yield* sql<{ id: string; body: string }>`select id, body from item order by length(id), id`
        assert.strictEqual(rows.length, 5_000)
        assert.isTrue(rows.every((row, index) => row.id === ids[index] && row.body === body))
        const large = yield* sql<{ text: string }>`select repeat(${body}, 8000) as text`
        assert.strictEqual(large[0]!.text.length, 960 * 8_000)
      }))

    it.effect("streams, lets the stream's consumer query, and survives a stream that is left early", () =>
      Effect.gen(function*() {
        const sql = yield* table
        const all = yield* Stream.runCount(sql`select * from generate_series(1, 20000) as g`.stream)
        assert.strictEqual(all, 20_000)
        const some = yield* sql<{ g: number }>`select * from generate_series(1, 5000) as g`.stream.pipe(
          Stream.mapEffect(({ g }) => Effect.as(sql`insert into item (id) values (${String(g)})`, g)),
          Stream.take(700),
          Stream.runCount
        )
        assert.strictEqual(some, 700)
        assert.isAtLeast(yield* count(sql, "new"), 700)
      }))

    it.effect("delivers a notification to every listener, and to the last after the first has left", () =>
      Effect.gen(function*() {
        const sql = yield* PgClient.PgClient
        const take = (queue: Queue.Dequeue<{ readonly payload: string }, unknown>) =>
          Effect.map(Queue.take(queue), ({ payload }) => payload)
        yield* Effect.scoped(Effect.gen(function*() {
          const last = yield* sql.listen("Orders")
          yield* Effect.scoped(Effect.gen(function*() {
            const first = yield* sql.listen("Orders")
            yield* sql.notify("Orders", "both")
            assert.strictEqual(yield* take(first), "both")
            assert.strictEqual(yield* take(last), "both")
          }))
          yield* sql.withTransaction(sql`select pg_notify('Orders', 'in a transaction')`)
          yield* Effect.ignore(sql.withTransaction(Effect.andThen(sql`select pg_notify('Orders', 'undone')`, Effect.fail("no"))))
          yield* sql.notify("Orders", "end")
          assert.strictEqual(yield* take(last), "in a transaction")
          assert.strictEqual(yield* take(last), "end")
        }))
      }))

    it.effect("goes on after fibers were interrupted while querying, waiting and inside a transaction", () =>
      Effect.gen(function*() {
        const sql = yield* table
        const holding = yield* Deferred.make<void>()
        const holder = yield* Effect.forkChild(sql.withTransaction(Effect.gen(function*() {
          yield* sql`insert into item (id) values ('held')`
          yield* Deferred.succeed(holding, void 0)
          return yield* Effect.never
        })))
        yield* Deferred.await(holding)
        const waiting = yield* Effect.forEach([1, 2, 3], (index) =>
          Effect.forkChild(sql.withTransaction(sql`insert into item (id) values (${`w${index}`})`)))
        yield* TestClock.withLive(Effect.sleep("20 millis"))
        yield* Effect.forEach(waiting, Fiber.interrupt, { concurrency: "unbounded" })
        yield* Fiber.interrupt(holder)
        const sleeping = yield* Effect.forkChild(sql`select pg_sleep(0.2)`)
        yield* Effect.yieldNow
        yield* Fiber.interrupt(sleeping)
        yield* Effect.forEach(Array.from({ length: 20 }, (_, index) => `after${index}`), (id) =>
          sql.withTransaction(sql`insert into item (id) values (${id})`), { concurrency: "unbounded" })
        const rows = yield* sql<{ n: number }>`select count(*)::int as n from item where id like 'after%'`
        assert.deepStrictEqual(rows, [{ n: 20 }])
        assert.deepStrictEqual(yield* sql`select id from item where id = 'held'`, [])
      }))
  })
}

layer(TestDatabase.layerPostgresEmpty, { timeout: 60_000 })("A transaction on postgres", (it) => {
    it.effect("fails, and does not die, when the connection is lost inside a transaction", () =>
      Effect.gen(function*() {
        const sql = yield* table
        const lost = sql.withTransaction(Effect.andThen(
          sql`insert into item (id) values ('lost')`,
          sql`select pg_terminate_backend(pg_backend_pid())`
        ))
        assert.isTrue((yield* Effect.flip(lost)).isRetryable)
        const refused = sql.withTransaction(Effect.andThen(
          Effect.ignore(sql`select pg_terminate_backend(pg_backend_pid())`),
          Effect.fail("refused")
        ))
        assert.strictEqual(yield* Effect.flip(refused), "refused")
        assert.strictEqual(yield* count(sql, "new"), 0)
      }))
})
