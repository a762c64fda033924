/**
 * Shows how PostgreSQL carries out every statement of the ledger, the cap and the run book on a million charges, and
 * fails when one that runs per charge or per page reads a whole table.
 *
 *     node packages/postgres/scripts/explain.ts [rows] [--plans]
 *
 * It runs on an embedded server of its own, or on a new database of `PURSER_TEST_DATABASE_URL`. Each statement is planned
 * twice: generically, as a prepared statement is after five uses, and for a batch of 512 that is then carried out and
 * rolled back.
 */
import { PgTypes } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import * as Cap from "../src/internal/capSql.ts"
import * as Reads from "../src/internal/ledgerReads.ts"
import * as Pages from "../src/internal/leasePages.ts"
import * as First from "../src/internal/firstClaims.ts"
import * as Writes from "../src/internal/ledgerWrites.ts"
import * as TakeOver from "../src/internal/takeOverSql.ts"
import { bigint, bigints, boolean, booleans, double, doubles, integer, integers, text, texts } from "../src/internal/params.ts"
import * as Refund from "../src/internal/refundSql.ts"
import * as Run from "../src/internal/runSql.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { pagesOfLeases, pagesOfRanOut } from "../test/support/leasePages.ts"
import { readsOf } from "../test/support/plans.ts"

const rows = Number(process.argv.find((argument) => /^\d+$/.test(argument)) ?? 1_000_000)
const showPlans = process.argv.includes("--plans")
const batch = 512
const tables = ["charges", "charge_event_pages", "run_rows", "cap_reservations", "refunds"]

interface Statement {
  readonly name: string
  readonly sql: string
  readonly params: ReadonlyArray<PgTypes.Parameter>
  /** Reads a whole run or all charges by its nature. */
  readonly whole?: true
}

const print = (line: string) => Effect.sync(() => void process.stdout.write(`${line}\n`))
const same = <A>(value: A) => Array.from({ length: batch }, () => value)

const timed = <A, E, R>(name: string, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const from = yield* Clock.currentTimeMillis
    const value = yield* effect
    yield* print(`${name.padEnd(44)} ${String((yield* Clock.currentTimeMillis) - from).padStart(8)} ms`)
    return value
  })

/** A million staged rows, planned by the run book's own statement, then moved to where rows of a used ledger stand. */
const fill = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  yield* timed("stage (server-side)", sql.unsafe(`insert into purser.run_rows (run_id, line, charge_key, namespace, customer_id, billing_period, amount_minor,
      currency, stripe_customer_id, allow_future)
    select 'run', i, md5(i::text), 'zmq-billing', 'customer-' || i, '2026-11', 1000 + i % 5000, 'usd', 'cus_' || md5('c' || i), false
    from generate_series(1, ${rows}) as i`))
  yield* sql.unsafe("analyze purser.run_rows")
  yield* timed("plan", sql.withTransaction(Effect.gen(function*() {
    yield* sql.unsafe(Run.lockRun, [text("run")])
    yield* sql.unsafe(Run.planRows, [text("run"), integer(0), integer(rows)])
    yield* sql.unsafe(Run.setPlanned, [text("run"), BigInt(rows), 0n])
  })))
  yield* timed("plan again, nothing new", sql.withTransaction(sql.unsafe(Run.planRows, [text("run"), integer(0), integer(rows)])))
  yield* timed("settle most (not part of the product)", sql.unsafe(`update purser.charges set
      state = case when n % 50 = 0 then 'declined' when n % 50 = 1 then 'attached' when n % 50 = 2 then 'claimed' when n % 50 = 3 then 'planned' else 'succeeded' end,
      payment_intent_id = case when n % 50 in (2, 3) then null else 'pi_' || charge_key end,
      outcome_payment_intent_id = 'pi_' || charge_key, received_minor = amount_minor, lease_epoch = 1, lease_worker = 'w1', first_claimed_at = planned_at,
      lease_until = case when n % 50 in (1, 2) then planned_at + n * interval '1 millisecond' end, release_due = n % 500 = 0, unpaid = n % 50 = 0,
      next_attempt_at = case when n % 50 = 0 then planned_at + n * interval '1 second' end
    from (select line as n, charge_key as k from purser.run_rows) r where k = charge_key`))
  for (const pages of [pagesOfLeases, pagesOfRanOut]) yield* sql.unsafe(pages)
  yield* sql.unsafe(Cap.open, [text("zmq-billing"), text("2026-11"), text("usd"), BigInt(rows) * 10_000n, integer(110), BigInt(rows) * 11_000n, text(null)])
  yield* sql.unsafe(`insert into purser.cap_reservations (charge_key, namespace, billing_period, currency, attempt, amount_minor, reserved_at)
    select charge_key, namespace, billing_period, currency, 1, amount_minor, purser.now() from purser.charges where state <> 'planned'`)
  yield* sql.unsafe(`update purser.caps set (reserved_minor, reservations, reserved_apart) = (select sum(amount_minor), count(*), true from purser.cap_reservations)`)
  yield* timed("refund every tenth (not part of the product)", sql.unsafe(`insert into purser.refunds (refund_key, charge_key, refund_id, billing_period,
      currency, amount_minor, actor, note, state, payment_intent_id, lease_until, requested_at, updated_at)
    select charge_key, charge_key, '1', billing_period, currency, 100, 'a', 'n', case when line % 100 = 0 then 'pending' else 'succeeded' end, 'pi',
      case when line % 100 = 0 then purser.now() end, purser.now(), purser.now() from purser.run_rows where line % 10 = 0`))
  yield* timed("vacuum analyze", sql.unsafe("vacuum analyze"))
})

const keysIn = Effect.fnUntraced(function*(where: string) {
  const sql = yield* SqlClient.SqlClient
  const found = yield* sql.unsafe<{ charge_key: string }>(`select charge_key from purser.charges where ${where} limit ${batch}`)
  return texts(found.map((row) => row.charge_key))
})

const statements = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const claimed = yield* keysIn("state = 'claimed'")
  const attached = yield* keysIn("state = 'attached'")
  const planned = yield* sql.unsafe<{ charge_key: string; customer_id: string; amount_minor: bigint; stripe_customer_id: string }>(
    `select charge_key, customer_id, amount_minor, stripe_customer_id from purser.charges where state = 'planned' limit ${batch}`
  )
  const declined = yield* keysIn("state = 'declined'")
  const due = yield* keysIn("release_due")
  const key = text((claimed.value as ReadonlyArray<string>)[0]!)
  const fresh = texts(Array.from({ length: batch }, (_, index) => (index + 0x1000).toString(16).padStart(32, "f")))
  const terms = (customers: ReadonlyArray<string>, amounts: ReadonlyArray<bigint>, stripeCustomers: ReadonlyArray<string>) => [
    texts(same("zmq-billing")), texts(customers), texts(same("2026-11")), texts(same(null)), bigints(amounts), texts(same("usd")),
    texts(stripeCustomers), texts(same(null)), booleans(same(false)), texts(same("w")), double(15_000), texts(same(null)), integers(same(0))
  ]
  const alike = (keys: typeof fresh, amounts: ReadonlyArray<bigint>, stripeCustomers: ReadonlyArray<string>, objects: typeof fresh, methods: typeof fresh) => [
    keys, text("zmq-billing"), text("2026-11"), text("usd"), bigints(amounts), texts(stripeCustomers), texts([]), text("w"), double(15_000), text(null), objects, methods,
    boolean(true), bigints([]), texts([])
  ]
  const nulls = texts(same(null))
  const list: ReadonlyArray<Statement> = [
    {
      name: "begin, all new",
      sql: First.beginNew,
      params: [...alike(fresh, same(1000n), same("cus_1"), texts(same("one")), texts(same("pm"))), texts(same("customer")), texts([]), boolean(false)]
    },
    {
      name: "begin, one",
      sql: First.beginOne,
      params: [
        text("0".repeat(32)), text("zmq-billing"), text("2026-11"), text("usd"), bigint(1000n), text("cus_1"), text(null), text("w"), double(15_000), text(null), text("one"), text("pm"),
        text("customer"), text(null), boolean(false)
      ]
    },
    {
      name: "begin, all planned",
      sql: First.beginPlanned,
      params: alike(texts(planned.map((row) => row.charge_key)), planned.map((row) => row.amount_minor), planned.map((row) => row.stripe_customer_id), texts([]), texts([]))
    },
    { name: "begin, new", sql: First.begin, params: [fresh, ...terms(same("customer"), same(1000n), same("cus_1")).slice(0, -1), texts(same("one")), texts(same("pm")), boolean(true), bigints([]), texts([])] },
    {
      name: "begin, planned",
      sql: First.begin,
      params: [
        texts(planned.map((row) => row.charge_key)),
        ...terms(planned.map((row) => row.customer_id), planned.map((row) => row.amount_minor), planned.map((row) => row.stripe_customer_id)).slice(0, -1),
        nulls, nulls, boolean(true), bigints([]), texts([])
      ]
    },
    {
      name: "settle one",
      sql: Writes.settleOne,
      params: [text((attached.value as ReadonlyArray<string>)[0]!), text("w"), text("pi_x"), text(null), bigint(1000n)]
    },
    {
      name: "settle paid",
      sql: Writes.settlePaid,
      params: [attached, text("w"), texts(same("pi_x")), nulls, bigints(same(1000))]
    },
    {
      name: "claim, planned",
      sql: Writes.claim,
      params: [
        texts(planned.map((row) => row.charge_key)),
        ...terms(planned.map((row) => row.customer_id), planned.map((row) => row.amount_minor), planned.map((row) => row.stripe_customer_id))
      ]
    },
    { name: "attach first", sql: Writes.attachFirst, params: [claimed, texts(same("w")), bigints(same(1)), integers(same(1)), texts(same("pi_x")), nulls] },
    { name: "attach", sql: Writes.attach, params: [claimed, texts(same("w")), bigints(same(1)), integers(same(1)), texts(same("pi_x")), nulls] },
    {
      name: "settle",
      sql: Writes.settle,
      params: [
        attached, texts(same("w")), bigints(same(1)), integers(same(1)), nulls, texts(same("succeeded")), texts(same("pi_x")), nulls, bigints(same(1000)),
        nulls, nulls, nulls, doubles(same(0)), nulls, nulls, doubles(same(0))
      ]
    },
    { name: "extend", sql: Writes.extend, params: [claimed, bigints(same(1)), double(15_000)] },
    { name: "hand back", sql: Writes.handBack, params: [claimed, texts(same("w")), bigints(same(1)), doubles(same(1000)), texts(same("later"))] },
    { name: "mark released", sql: Writes.markReleased, params: [due, integers(same(1))] },
    { name: "renew", sql: Writes.renew, params: [key, text("w"), PgTypes.int8(1n), integer(1), text("pi_x")] },
    { name: "quarantine", sql: Writes.quarantine, params: [key, text("w"), text("differs")] },
    { name: "turn lease pages", sql: Pages.turnPages, params: [integer(16)] },
    { name: "take expired", sql: TakeOver.takeExpired, params: [text("w"), integer(batch), double(15_000)] },
    { name: "release due", sql: Reads.releaseDue, params: [integer(batch)] },
    { name: "reopen", sql: Writes.reopen, params: [declined, texts(["declined"]), text("ada"), text("new cards"), text("pm_new"), integer(null)] },
    { name: "attempts due", sql: Reads.attemptsDue, params: [integer(batch)] },
    { name: "refund: lock charge", sql: Refund.lockCharge, params: [key] },
    { name: "refund: held", sql: Refund.held, params: [key, text("pi_1")] },
    { name: "refund: take", sql: Refund.take, params: [key, text("w"), double(15_000)] },
    { name: "refund: take expired", sql: Refund.takeExpired, params: [text("w"), integer(batch), double(15_000)] },
    { name: "refund: list", sql: Refund.list, params: [key] },
    { name: "rebill: next revision", sql: Refund.successor, params: [key] },
    { name: "find", sql: Reads.find, params: [key] },
    { name: "events", sql: Reads.events, params: [key] },
    { name: "pending page", sql: Run.pending, params: [text("run"), integer(Math.floor(rows / 2)), integer(1000), integer(rows)] },
    { name: "report page", sql: Run.report, params: [text("run"), integer(Math.floor(rows / 2)), integer(1000)] },
    { name: "run: duplicates", sql: Run.duplicates, params: [text("run"), integer(20)], whole: true },
    { name: "run: totals", sql: Run.totals, params: [text("run")], whole: true },
    { name: "run: summary", sql: Run.summary, params: [text("run")], whole: true },
    { name: "unpaid page", sql: Run.unpaid, params: [text("run"), integer(Math.floor(rows / 2)), integer(1000), integer(rows), texts(["declined"])] },
    { name: "refunds: report", sql: Refund.report, params: [text("2026-11")], whole: true },
    { name: "ledger: report", sql: Reads.report, params: [text("2026-11")], whole: true }
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

const lines = (answer: ReadonlyArray<Record<string, unknown>>) => answer.map((row) => String(row["QUERY PLAN"])).join("\n")

const explain = Effect.fnUntraced(function*(statement: Statement) {
  const sql = yield* SqlClient.SqlClient
  const generic = yield* sql.withTransaction(Effect.gen(function*() {
    yield* sql.unsafe("set local plan_cache_mode = force_generic_plan")
    yield* sql.unsafe(`prepare q as ${statement.sql}`).unprepared
    const nulls = statement.params.map(() => "null").join(", ")
    const plan = yield* sql.unsafe(`explain execute q(${nulls})`).unprepared
    yield* sql.unsafe("deallocate q").unprepared
    return lines(plan as ReadonlyArray<Record<string, unknown>>)
  }))
  const real = yield* sql.withTransaction(
    Effect.flatMap(sql.unsafe(`explain (analyze, buffers, costs off) ${statement.sql}`, statement.params), (plan) =>
      Effect.fail(new Undo(lines(plan as ReadonlyArray<Record<string, unknown>>))))
  ).pipe(Effect.catchTag("Undo", ({ plan }) => Effect.succeed(plan)))
  return { generic, real }
})

const program = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  yield* fill
  const failures: Array<string> = []
  for (const statement of yield* statements) {
    const plans = yield* explain(statement)
    const took = /Execution Time: ([\d.]+) ms/.exec(plans.real)?.[1] ?? "?"
    const scans = Object.entries(plans).flatMap(([kind, plan]) =>
      tables.filter((table) => new RegExp(`Seq Scan on (?:purser\\.)?${table}\\b`).test(plan)).map((table) => `${kind}: ${table}`))
    const indexes = [...new Set([...plans.real.matchAll(/(?:Index (?:Only )?Scan (?:Backward )?using|Bitmap Index Scan on) (\w+)/g)].map((found) => found[1]))]
    yield* print(`${statement.name.padEnd(24)} ${took.padStart(10)} ms  ${indexes.join(", ")}${scans.length > 0 ? `  whole tables: ${scans.join("; ")}` : ""}`)
    if (showPlans) yield* print(`${plans.generic}\n\n${plans.real}\n`)
    if (scans.length > 0 && statement.whole === undefined) failures.push(`${statement.name} reads ${scans.join(", ")}`)
  }
  // What a function does inside is not in its plan; the table's own counters tell.
  const fresh = texts(Array.from({ length: batch }, (_, index) => index.toString(16).padStart(32, "e")))
  const reads = yield* readsOf("cap_reservations", timed(
    "reserve 512, 20 times",
    Effect.forEach(Array.from({ length: 20 }), () =>
      Effect.andThen(
        sql.unsafe(Cap.reserve, [
          fresh, texts(same("zmq-billing")), texts(same("2026-11")), texts(same("usd")), integers(same(1)), bigints(same(1)), booleans(same(false))
        ]),
        sql.unsafe(Cap.release, [fresh, integers(same(1))])
      ), { discard: true })
  ))
  if (reads.whole > 0 || reads.looks === 0) failures.push("reserve or release reads all reservations")
  yield* print(failures.length === 0 ? "no statement on the way of a charge reads a whole table" : failures.join("\n"))
  if (failures.length > 0) process.exitCode = 1
}).pipe(Effect.provide(TestDatabase.layerPostgres))

await Effect.runPromise(program)
