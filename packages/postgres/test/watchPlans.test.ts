/** What webhooks and reconciliation ask reads no whole table either: events by the thousand, rows by page, objects by key. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { double, integer, text, texts } from "../src/internal/params.ts"
import * as TakeOver from "../src/internal/takeOverSql.ts"
import * as Watch from "../src/internal/watchSql.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { planOf } from "./support/plans.ts"

const rows = 20_000

const fill = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  yield* sql.unsafe(`insert into purser.charges (charge_key, namespace, customer_id, billing_period, amount_minor, currency, stripe_customer_id, state, planned_at, updated_at)
    select md5(i::text), 'n', 'c' || i, '2026-' || (i % 12), 1000, 'usd', 'cus_' || i, 'succeeded', purser.now(), purser.now() from generate_series(1, ${rows}) as i`)
  yield* sql.unsafe(`insert into purser.webhook_events (event_id, type, created_at, subject, received_at, due_at, verdict)
    select 'evt_' || i, 't', purser.now(), 'other', purser.now() - i * interval '1 minute', case when i % 100 = 0 then purser.now() end, case when i % 100 <> 0 then 'ignored' end
    from generate_series(1, ${rows}) as i`)
  yield* sql.unsafe(`insert into purser.movements (id, kind, charge_key, amount_minor, currency, status, created_at, seen_at)
    select 're_' || i, 'refund', md5(i::text), 1, 'usd', 's', purser.now(), purser.now() from generate_series(1, ${rows}) as i`)
  yield* sql.unsafe(`insert into purser.unknown_objects (id, reason, first_seen_at, last_seen_at, resolved_at)
    select 'pi_' || i, 'foreign', purser.now(), purser.now(), case when i % 10 <> 0 then purser.now() end from generate_series(1, ${rows}) as i`)
  yield* sql.unsafe(`insert into purser.reconcile_objects (book_id, id, charge_key, object, booked_at)
    select 'book' || (i % 4), 'pi_' || i, md5(i::text), '{}', purser.now() from generate_series(1, ${rows}) as i`)
  yield* sql.unsafe("analyze purser.charges, purser.webhook_events, purser.movements, purser.unknown_objects, purser.reconcile_objects")
})

const key = text("00000000000000000000000000000000")
const statements: Readonly<Record<string, readonly [string, ReadonlyArray<unknown>]>> = {
  takeWaiting: [TakeOver.takeWaiting, [key, text("w"), double(1)]],
  page: [Watch.page, [text("2026-3"), key, integer(100)]],
  take: [Watch.take, [integer(100), double(1)]],
  finish: [Watch.finish, [text("evt_1"), text("ignored"), text(null)]],
  recent: [Watch.recent, [integer(100)]],
  purge: [Watch.purge, [double(1e9), integer(100)]],
  movements: [Watch.movements, [key]],
  unknown: [Watch.unknown, [text("pi_1"), integer(100)]],
  booked: [Watch.booked, [text("book1"), texts(Array.from({ length: 100 }, (_, index) => index.toString(16).padStart(32, "0")))]],
  withoutRow: [Watch.withoutRow, [text("book1"), text("pi_1"), integer(100)]]
}

for (const [name, database] of TestDatabase.layers) {
  layer(database, { timeout: 120_000 })(`plans of watching on ${name}`, (it) => {
    it.effect("reads no table from end to end", () =>
      Effect.gen(function*() {
        yield* fill
        for (const [operation, [statement, params]] of Object.entries(statements)) {
          const plan = yield* planOf(statement, params)
          assert.notMatch(plan, /Seq Scan on (charges|webhook_events|movements|unknown_objects|reconcile_objects)/, `${operation}:\n${plan}`)
        }
      }))
  })
}
