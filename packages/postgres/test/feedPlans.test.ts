/**
 * The event log's statements probe or walk an index, whatever the planner believes about sizes: those of a reader as the
 * planner shows them, and those inside the functions by what they did, in their first calls and after their plans are cached.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import * as Feed from "../src/internal/feedSql.ts"
import { integer, text } from "../src/internal/params.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { linesOf } from "./support/eventPages.ts"
import { genericPlanOf, planOf } from "./support/plans.ts"

const rows = 20_000

const insert = (from: number, to: number) => `with c as (
    insert into purser.charges (charge_key, namespace, customer_id, billing_period, amount_minor, currency, stripe_customer_id, state, planned_at, updated_at)
    select md5(i::text), 'n', 'c' || i, '2026-11', 1000, 'usd', 'cus_' || i, 'planned', purser.now(), purser.now() from generate_series(${from}, ${to}) as i
    returning charge_key
  )
  select count(*) from c`
/** Each of them with three lines. */
const insertTrail = (from: number, to: number) => [1, 2, 3].map((seq) =>
  linesOf(`select md5(i::text) as charge_key, ${seq} as seq, null as from_state, 'planned' as to_state, null as worker, null as detail from generate_series(${from}, ${to}) as i`))

const fill = (from: number, to: number) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => Effect.forEach([insert(from, to), ...insertTrail(from, to)], (statement) => sql.unsafe(statement), { discard: true }))

interface Reads {
  readonly relname: string
  readonly seq_scan: bigint
  readonly idx_tup_fetch: bigint
}
const reads = `select relname, seq_scan, idx_tup_fetch from pg_stat_xact_user_tables
  where schemaname = 'purser' and relname in ('charges', 'charge_event_pages', 'feed_log') order by 1`

/** Tables of which a call of a function read all, by the table or by an index; they hold some 60,000 rows. */
const readWhole = (call: string) =>
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    return yield* sql.withTransaction(Effect.gen(function*() {
      const before = new Map((yield* sql.unsafe<Reads>(reads)).map((table) => [table.relname, table]))
      yield* sql.unsafe(call)
      return (yield* sql.unsafe<Reads>(reads)).filter(({ idx_tup_fetch, relname, seq_scan }) =>
        seq_scan > (before.get(relname)?.seq_scan ?? 0n) || idx_tup_fetch > (before.get(relname)?.idx_tup_fetch ?? 0n) + 5000n)
    }))
  })

for (const [name, database] of TestDatabase.layers) {
  layer(database, { timeout: 120_000 })(`plans of the event log on ${name}`, (it) => {
    it.effect("read no table from end to end", () =>
      Effect.gen(function*() {
        const sql = yield* SqlClient.SqlClient
        yield* fill(1, rows)
        const lastOf = Effect.map(sql.unsafe<{ last: bigint }>("select last from purser.feed_head"), ([head]) => Number(head!.last))
        // Events wait for every older transaction of the server, and other tests have theirs.
        for (let n = 0; n < 200 && (yield* lastOf) < rows * 3; n++) {
          yield* sql.unsafe(`select * from purser.sequence_events(${rows})`)
          yield* sql.unsafe("select pg_sleep(0.02)")
        }
        const isOpen = Effect.map(sql.unsafe<{ open: boolean }>("select low < high as open from purser.feed_head"), ([head]) => head!.open)
        for (let n = 0; n < 200 && (yield* isOpen); n++) {
          yield* sql.unsafe(`select * from purser.sequence_events(${rows})`)
          yield* sql.unsafe("select pg_sleep(0.02)")
        }
        yield* sql.unsafe("analyze purser.charges, purser.charge_event_pages, purser.feed_log")
        assert.strictEqual(yield* lastOf, rows * 3)

        const readers: Record<string, readonly [string, ReadonlyArray<unknown>]> = {
          read: [Feed.read, [BigInt(rows), integer(1000)]],
          snapshot: [Feed.snapshot, [BigInt(rows), text("8"), integer(1000)]]
        }
        for (const [operation, [statement, params]] of Object.entries(readers)) {
          const own = yield* planOf(statement, params)
          const generic = yield* genericPlanOf(operation, statement, params)
          for (const plan of [own, generic]) {
            assert.match(plan, /Index (Only )?Scan/, operation)
            assert.notMatch(plan, /Seq Scan on (charges|charge_event_pages|feed_log)/, operation)
          }
        }

        // The sixth call on is that of a cached plan; some find new events, some only a window to close.
        for (let n = 0; n < 9; n++) {
          if (n % 2 === 0) yield* fill(rows + 1 + 10 * n, rows + 10 + 10 * n)
          assert.deepStrictEqual(yield* readWhole("select * from purser.sequence_events(1000)"), [], `call ${n}`)
        }
        for (let n = 0; n < 7; n++) {
          assert.deepStrictEqual(yield* readWhole(`select * from purser.trim_feed(${rows * 2}, 100)`), [], `trim ${n}`)
        }
        const [trimmed] = yield* sql.unsafe<{ trimmed_to: bigint }>("select trimmed_to from purser.feed_head")
        assert.strictEqual(Number(trimmed!.trimmed_to), 700)
      }), 120_000)
  })
}
