/** The run book on both databases passes the suite of every run book, and its pages cost what they hold. */
import { RunLedger } from "@purser/core"
import * as RunLedgerConformance from "@purser/testkit/RunLedgerConformance"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { planPart } from "../src/internal/runSql.ts"
import { PgLedger } from "../src/PgLedger.ts"
import { PgRunLedger } from "../src/PgRunLedger.ts"
import { PgSpendCap } from "../src/PgSpendCap.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { storeClock } from "./support/storeClock.ts"

const rows = 5_000
const page = 50

/** How often charges have been looked up in this transaction. */
const lookUps = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql.unsafe<{ readonly scans: bigint }>("select idx_scan as scans from pg_stat_xact_user_tables where relid = 'purser.charges'::regclass")
  return Number(row!.scans)
})

for (const [name, database] of TestDatabase.layers) {
  RunLedgerConformance.suite(
    name,
    Layer.mergeAll(PgRunLedger.layer, PgLedger.layer, PgSpendCap.layer, storeClock).pipe(Layer.provide(database))
  )

  layer(PgRunLedger.layer.pipe(Layer.provideMerge(database)), { timeout: 120_000 })(`pages on ${name}`, (it) => {
    it.effect("of pending rows look up the charges of about as many lines, in the midst of a run too", () =>
      Effect.gen(function*() {
        const book = yield* RunLedger
        const sql = yield* SqlClient.SqlClient
        // Where runs do not lie in the order of their names, the planner would sort what is left of one rather than follow its index.
        for (const run of ["z", "pages"]) {
          yield* sql.unsafe(`insert into purser.run_rows (run_id, line, charge_key, namespace, customer_id, billing_period, amount_minor, currency, stripe_customer_id)
            select '${run}', i, md5('${run}' || i), 'n', 'c' || i, '2026-11', 1000, 'usd', 'cus_' || i from generate_series(1, ${rows}) as i`)
          yield* book.plan(run)
        }
        yield* sql.unsafe("analyze purser.run_rows")
        for (const after of [0, rows / 2]) {
          yield* sql.withTransaction(Effect.gen(function*() {
            const before = yield* lookUps
            assert.deepStrictEqual((yield* book.pending("pages", after, page)).map(({ line }) => line), Array.from({ length: page }, (_, index) => after + index + 1))
            assert.isAtMost((yield* lookUps) - before, 2 * page)
          }))
        }
      }))
  })
}

// The embedded database takes its time for so many rows, and the statements are the same.
layer(PgRunLedger.layer.pipe(Layer.provideMerge(TestDatabase.layerPostgres)), { timeout: 120_000 })("charges on postgres", (it) => {
  it.effect("of a run that is planned in parts lie in the order of the parts, and the first line of an identity wins in all of them", () =>
    Effect.gen(function*() {
      const book = yield* RunLedger
      const sql = yield* SqlClient.SqlClient
      const more = 100
      const large = planPart + more
      // Lines have gaps, as those of a file do, and the last row is the first one's identity once more, at another price.
      yield* sql.unsafe(`insert into purser.run_rows (run_id, line, charge_key, namespace, customer_id, billing_period, amount_minor, currency, stripe_customer_id)
        select 'parts', 3 * i - 1, md5('parts' || case i when ${large} then 1 else i end), 'n', 'c' || i, '2026-12', i, 'usd', 'cus_' || i from generate_series(1, ${large}) as i`)
      assert.deepStrictEqual(yield* book.plan("parts"), { planned: large - 1, present: 1 })
      const [lying] = yield* sql.unsafe<{ readonly first: boolean; readonly apart: boolean }>(`select
        bool_or(c.charge_key = md5('parts1') and c.amount_minor = 1) as first,
        max(c.ctid) filter (where c.amount_minor <= ${planPart}) < min(c.ctid) filter (where c.amount_minor > ${planPart}) as apart
        from purser.charges c where c.billing_period = '2026-12'`)
      assert.deepStrictEqual(lying, { first: true, apart: true })
      assert.deepStrictEqual(yield* book.plan("parts"), { planned: 0, present: large })
    }))
})
