/**
 * Shows how PostgreSQL carries out every statement of a console on a million charges, and fails when one that is asked for
 * again and again reads a whole table, or when a page of the search takes longer at the end of the list than it may.
 *
 *     node packages/postgres/scripts/explainConsole.ts [rows] [--plans]
 *
 * It runs on an embedded server of its own, or on a new database of `PURSER_TEST_DATABASE_URL`.
 */
import type { ChargePlace, ChargeQuery } from "@purser/core"
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import * as Attention from "../src/internal/attentionSql.ts"
import * as Calls from "../src/internal/callSql.ts"
import { double, integer, text } from "../src/internal/params.ts"
import * as RunStats from "../src/internal/runStatsSql.ts"
import * as Search from "../src/internal/searchSql.ts"
import * as Trail from "../src/internal/trailSql.ts"
import * as Workers from "../src/internal/workerSql.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { linesOf } from "../test/support/eventPages.ts"
import { pagesOfLeases, pagesOfSettled } from "../test/support/leasePages.ts"

const rows = Number(process.argv.find((argument) => /^\d+$/.test(argument)) ?? 1_000_000)
const showPlans = process.argv.includes("--plans")
const tables = ["charges", "charge_event_pages", "charge_objects", "run_rows", "run_conflicts", "operator_acts", "processor_calls"]
/** Charges in lease pages that are settled, beside those in work: the claims of five seconds at 4000 a second. */
const settledInPages = 20_000
/** What a page may take, with a generous machine's noise. */
const pageMaxMs = 250

const print = (line: string) => Effect.sync(() => void process.stdout.write(`${line}\n`))

/** Charges of twelve periods as a used ledger has them, each with its events, one run over the last of the periods. */
const fill = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const from = yield* Clock.currentTimeMillis
  yield* sql.unsafe(`insert into purser.charges (charge_key, namespace, customer_id, billing_period, amount_minor, currency, stripe_customer_id, state, planned_at,
      updated_at, payment_intent_id, outcome_payment_intent_id, received_minor, settled_at, lease_until, lease_worker, quarantine, first_claimed_at, outcome_detail, unpaid)
    select md5(i::text), 'zmq-billing', 'customer-' || i % 200000, '2026-' || lpad((1 + i % 12)::text, 2, '0'), 1000 + i % 5000, 'usd', 'cus_' || i, s.state,
      purser.now(), purser.now(), case when s.state not in ('planned', 'claimed', 'rejected') then 'pi_' || i end,
      case when s.state in ('succeeded', 'declined') then 'pi_' || i end, case when s.state = 'succeeded' then 1000 end,
      case when s.state in ('succeeded', 'declined', 'rejected') then purser.now() - (i % 3600) * interval '1 second' end,
      case when s.state in ('claimed', 'attached') then purser.now() + (i % 600 - 300) * interval '1 second' end, 'w' || i % 8,
      case when i % 100000 = 17 then 'differs' end, case when s.state <> 'planned' then purser.now() - interval '1 hour' end, case when s.state = 'declined' then 'no funds' end,
      s.state in ('declined', 'rejected')
    from generate_series(1, ${rows}) as i cross join lateral (select case
      when i % 1000 = 1 then 'claimed' when i % 1000 = 2 then 'attached' when i % 250000 = 3 then 'planned' when i % 50 = 4 then 'declined' when i % 5000 = 5 then 'rejected'
      else 'succeeded' end as state) s`)
  for (const pages of [pagesOfLeases, pagesOfSettled(settledInPages)]) yield* sql.unsafe(pages)
  for (const n of [1, 2, 3]) {
    yield* sql.unsafe(linesOf(`select charge_key, ${n} as seq, null as from_state, ${n === 1 ? "'planned'" : n === 2 ? "'attached'" : "state"} as to_state, 'w1' as worker,
      ${n === 2 ? "payment_intent_id" : "null"} as detail from purser.charges`))
  }
  yield* sql.unsafe("insert into purser.charge_objects (object, charge_key) select payment_intent_id, charge_key from purser.charges where payment_intent_id is not null")
  yield* sql.unsafe(`insert into purser.runs (run_id, source, state, begun_at, planned_at, planned, present)
    values ('run', 'bills.csv', 'planned', purser.now() - interval '1 hour', purser.now() - interval '1 hour', ${Math.floor(rows / 12)}, 0)`)
  yield* sql.unsafe(`insert into purser.run_rows (run_id, line, charge_key, namespace, customer_id, billing_period, amount_minor, currency, stripe_customer_id)
    select 'run', row_number() over (), charge_key, namespace, customer_id, billing_period, amount_minor, currency, stripe_customer_id from purser.charges where billing_period = '2026-12'`)
  yield* sql.unsafe(`insert into purser.run_conflicts (run_id, line, charge_key, amount_minor, currency, stripe_customer_id, seen_at, resolved_at)
    select 'run', line, charge_key, 1, 'usd', 'cus', purser.now(), case when line % 1000 > 0 then purser.now() end from purser.run_rows where line % 10 = 0`)
  yield* sql.unsafe(`insert into purser.operator_acts (at, actor, act, subject, reason) select purser.now(), 'ada', 'pause', md5(i::text), 'x' from generate_series(1, 50000) as i`)
  yield* sql.unsafe(`insert into purser.processor_calls (charge_key, at, operation, status, request_id, replayed, elapsed_ms)
    select charge_key, purser.now(), n, '200', 'req_' || charge_key, false, 40 from purser.charges, unnest(array['create', 'confirm']) as n`)
  yield* sql.unsafe("vacuum analyze")
  yield* print(`${rows} charges after ${(yield* Clock.currentTimeMillis) - from} ms`)
})

interface Statement {
  readonly name: string
  readonly sql: string
  readonly params: ReadonlyArray<unknown>
  /** Reads a whole run by its nature. */
  readonly whole?: true
}

const search = (name: string, query: ChargeQuery, after: ChargePlace | null = null): Statement => ({ name: `search: ${name}`, ...Search.find(query, after, 200, 5_000) })

const statements = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const [key] = yield* sql.unsafe<{ charge_key: string; customer_id: string; billing_period: string }>("select charge_key, customer_id, billing_period from purser.charges where billing_period = '2026-01' order by planned_at, charge_key limit 1")
  const end: ChargePlace = { customerId: "customer-9", billingPeriod: "2026-01", chargeKey: key!.charge_key }
  const list: ReadonlyArray<Statement> = [
    search("everything, the first page", {}),
    search("everything, near the end", {}, end),
    search("one period", { billingPeriod: "2026-06" }),
    search("a customer", { customer: { text: "customer-4711", whole: true } }),
    search("customers by their beginning", { customer: { text: "customer-47", whole: false } }),
    search("customers of a period and state", { customer: { text: "customer-1", whole: false }, billingPeriod: "2026-03", state: "declined" }),
    search("succeeded", { state: "succeeded" }),
    search("declined", { state: "declined" }),
    search("rejected, which are rare", { state: "rejected", billingPeriod: "2026-06" }),
    search("planned, of which there are four", { state: "planned" }),
    search("claimed", { state: "claimed" }),
    search("attached in one period", { billingPeriod: "2026-03", state: "attached" }),
    search("quarantined", { state: "quarantined" }),
    { name: "search: a payment object", ...Search.findObject("pi_4711", 200) },
    { name: "search: place after a budget", ...Search.place({ state: "succeeded" }, null, 5_000) },
    { name: "attention: counts", sql: Attention.counts, params: [integer(1000), double(60_000)] },
    { name: "attention: unresolved", sql: Attention.unresolved, params: [double(60_000), integer(200)] },
    { name: "attention: quarantined", sql: Attention.quarantined, params: [text(""), integer(200)] },
    { name: "attention: conflicts", sql: Attention.conflicts, params: [text(""), integer(0), integer(200)] },
    { name: "attention: conflicts of", sql: Attention.conflictsOf, params: [text(key!.charge_key)] },
    { name: "attention: end quarantine", sql: Attention.endQuarantine, params: [text(key!.charge_key), text("ada"), text("x")] },
    { name: "attention: hasten", sql: Attention.hasten, params: [text(key!.charge_key), text("ada"), text("x")] },
    { name: "trail: acts", sql: Trail.acts, params: [null, integer(100)] },
    { name: "trail: acts on a charge", sql: Trail.actsOn, params: [text(key!.charge_key), integer(100)] },
    { name: "trail: history of the caps", sql: Trail.capEvents, params: [null, integer(200)] },
    { name: "story: calls to Stripe", sql: Calls.of, params: [text(key!.charge_key), integer(500)] },
    { name: "story: runs of a charge", sql: RunStats.runsOf, params: [text(key!.charge_key), integer(50)] },
    { name: "workers", sql: Workers.list, params: [integer(20_000)] },
    { name: "run: view", sql: RunStats.groups, params: [text("run"), double(0), double(1e13), integer(60), double(0)], whole: true }
  ]
  return list
})

class Undo {
  readonly _tag = "Undo"
  readonly plan: string
  constructor(plan: string) {
    this.plan = plan
  }
}

const planOf = Effect.fnUntraced(function*({ params, sql: statement }: Statement) {
  const sql = yield* SqlClient.SqlClient
  // What an act changes is put back.
  return yield* sql.withTransaction(
    Effect.flatMap(sql.unsafe(`explain (analyze, buffers, costs off) ${statement}`, params), (plan) =>
      Effect.fail(new Undo(plan.map((row) => String((row as Record<string, unknown>)["QUERY PLAN"])).join("\n"))))
  ).pipe(Effect.catchTag("Undo", ({ plan }) => Effect.succeed(plan)))
})

const program = Effect.gen(function*() {
  yield* fill
  const failures: Array<string> = []
  for (const statement of yield* statements) {
    const plan = yield* planOf(statement)
    const took = Number(/Execution Time: ([\d.]+) ms/.exec(plan)?.[1] ?? Number.NaN)
    const scans = tables.filter((table) => new RegExp(`Seq Scan on (?:purser\\.)?${table}\\b`).test(plan))
    const indexes = [...new Set([...plan.matchAll(/(?:Index (?:Only )?Scan (?:Backward )?using|Bitmap Index Scan on) (\w+)/g)].map((found) => found[1]))]
    yield* print(`${statement.name.padEnd(42)} ${took.toFixed(1).padStart(9)} ms  ${indexes.join(", ")}${scans.length > 0 ? `  whole tables: ${scans.join(", ")}` : ""}`)
    if (showPlans) yield* print(`${plan}\n`)
    if (statement.whole !== undefined) continue
    if (scans.length > 0) failures.push(`${statement.name} reads ${scans.join(", ")}`)
    if (!(took < pageMaxMs)) failures.push(`${statement.name} took ${took} ms`)
  }
  yield* print(failures.length === 0 ? "no page of a console reads a whole table" : failures.join("\n"))
  if (failures.length > 0) process.exitCode = 1
}).pipe(Effect.provide(TestDatabase.layerPostgres))

await Effect.runPromise(program)
