/** Rows of a run from a query: read by their columns on both databases, with what is no charge refused by its row. */
import { QueryRun } from "@purser/purser"
import * as TestDatabase from "@purser/postgres/TestDatabase"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Fiber, Redacted, Schedule, Stream } from "effect"
import { SqlClient } from "effect/sql"

const rowsOf = (params: unknown) =>
  Effect.gen(function*() {
    const { source } = yield* QueryRun.definition.close
    if (source._tag !== "Rows") return yield* Effect.die(new Error("Bug: a query has no stages"))
    return (yield* Stream.runCollect(source.rows(params))).flat()
  })

const invoices = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create table invoices (id bigint primary key, customer text, due_on date, total numeric(12, 2), cents bigint, method text)`
  yield* sql`insert into invoices values (1, 'ada', '2026-07-31', 12.5, null, null), (2, 'bob', '2026-07-31', null, 700, 'pm_1'), (3, 'cyd', '2026-06-30', 1, null, null)`
})
const select = `select customer as customer_id, to_char(due_on, 'YYYY-MM') as billing_period, total as amount, cents as amount_minor, 'USD' as currency,
  'cus_' || customer as stripe_customer_id, method as payment_method, id as item from invoices`

describe("a query", () => {
  for (const [name, database] of TestDatabase.layers) {
    it.live(`gives rows in its order, with the time of its schedule, on ${name}`, () =>
      Effect.gen(function*() {
        yield* invoices
        const rows = yield* rowsOf({ sql: `${select} where due_on = ($1::timestamp - interval '1 day')::date order by id`, at: "2026-08-01T06:00:00" })
        assert.deepStrictEqual(rows.map(({ line, request }) => [line, request.customerId, request.billingPeriod, request.amountMinor, request.currency, request.item, request.paymentMethod]), [
          [1, "ada", "2026-07", 1250, "usd", "1", undefined], [2, "bob", "2026-07", 700, "usd", "2", "pm_1"]
        ])
        assert.strictEqual(rows[0]!.chargeKey, rows[0]!.request.chargeKey)
        const all = yield* rowsOf({ sql: `select 'c' || n as customer_id, '2026-07' as billing_period, 100 as amount_minor, 'usd' as currency, 'cus' as stripe_customer_id from generate_series(1, 2500) n` })
        assert.deepStrictEqual([all.length, all.at(-1)?.line, all.at(-1)?.request.customerId], [2500, 2500, "c2500"])
      }).pipe(Effect.provide(database)), 60_000)

    it.live(`is refused by the row that is no charge, and by what the database says, on ${name}`, () =>
      Effect.gen(function*() {
        yield* invoices
        const amount = yield* Effect.flip(rowsOf({ sql: `${select} union all select 'dan', '2026-07', -1, null, 'usd', 'cus_dan', null, 9` }))
        assert.match(amount.message, /source of "query" failed: row 4 of the query/)
        const column = yield* Effect.flip(rowsOf({ sql: "select 'x' as customer_id" }))
        assert.match(column.message, /row 1 of the query/)
        const wrong = yield* Effect.flip(rowsOf({ sql: "select * from nowhere" }))
        assert.strictEqual(wrong.reason._tag, "SourceFailed")
        assert.include(wrong.message, "42P01 relation \"nowhere\" does not exist")
        assert.strictEqual((yield* Effect.flip(rowsOf({ text: "select 1" }))).reason._tag, "SourceFailed")
        const secret = yield* Effect.flip(rowsOf({ sql: "select 'host=x password=hunter2 postgres://a:hunter2@x/y' from nowhere" }))
        assert.notInclude(secret.message, "hunter2")
      }).pipe(Effect.provide(database)), 60_000)

    it.live(`reads and writes nothing, whatever its text says, on ${name}`, () =>
      Effect.gen(function*() {
        yield* invoices
        const sql = yield* SqlClient.SqlClient
        yield* sql`create function spoil() returns text language sql as 'delete from invoices returning customer'`
        const texts = [
          "delete from invoices returning customer as customer_id",
          "with gone as (delete from invoices returning customer) select customer as customer_id from gone",
          "select set_config('transaction_read_only', 'off', true) as customer_id, spoil() as currency",
          "select spoil() as customer_id",
          "commit; delete from invoices",
          "drop table invoices",
          "truncate invoices"
        ]
        const refusals = yield* Effect.forEach(texts, (text) => Effect.map(Effect.flip(rowsOf({ sql: text })), ({ message }) => message))
        assert.deepStrictEqual(refusals.filter((message) => !/ was refused: [0-9A-Z]{5} /.test(message)), [])
        assert.include(refusals[0], `"delete from invoices returning customer as customer_id" was refused: 25006 cannot execute DELETE in a read-only transaction`)
        assert.deepStrictEqual(yield* sql`select count(*)::int as rows from invoices`, [{ rows: 3 }])
        // The connection that was refused goes on to write.
        yield* sql`insert into invoices values (4, 'dan', '2026-07-31', 1, null, null)`
      }).pipe(Effect.provide(database)), 60_000)
  }

  it.live("ends at the server when nobody reads it any more", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const asleep = sql<{ rows: number }>`select count(*)::int as rows from pg_stat_activity where query like 'select pg_sleep%' and state = 'active'`
      const until = (rows: number) => Effect.repeat(asleep, { until: ([found]) => found?.rows === rows, schedule: Schedule.spaced("20 millis") })
      const reading = yield* Effect.forkChild(rowsOf({ sql: "select pg_sleep(600)" }))
      yield* until(1)
      yield* Fiber.interrupt(reading)
      yield* until(0)
    }).pipe(Effect.provide(TestDatabase.layerPostgres)), 60_000)

  it.live("asks another database where one is named", () =>
    Effect.gen(function*() {
      const url = yield* TestDatabase.postgresUrl
      const rows = rowsOf({ sql: "select current_database() as customer_id, '2026-07' as billing_period, 100 as amount_minor, 'usd' as currency, 'cus' as stripe_customer_id" })
      const [row] = yield* rows.pipe(Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown({ PURSER_SOURCE_DATABASE_URL: Redacted.value(url) })))
      assert.strictEqual(`/${row!.request.customerId}`, new URL(Redacted.value(url)).pathname)
    }).pipe(Effect.scoped, Effect.provide(TestDatabase.layerPglite)), 60_000)
})
