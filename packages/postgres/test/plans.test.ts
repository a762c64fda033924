/**
 * No statement on the way of a charge reads a whole table, be its plan made once for all batches (as a prepared
 * statement's is) or for one of 512. The million is in `scripts/explain.ts`; twenty thousand rows decide the same.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import * as Cap from "../src/internal/capSql.ts"
import * as Reads from "../src/internal/ledgerReads.ts"
import * as Pages from "../src/internal/leasePages.ts"
import * as First from "../src/internal/firstClaims.ts"
import * as Writes from "../src/internal/ledgerWrites.ts"
import * as TakeOver from "../src/internal/takeOverSql.ts"
import { bigints, boolean, booleans, double, doubles, integer, integers, text, texts } from "../src/internal/params.ts"
import * as Refund from "../src/internal/refundSql.ts"
import * as Run from "../src/internal/runSql.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { pagesOfLeases, pagesOfRanOut } from "./support/leasePages.ts"
import { genericPlanOf, planOf, readsOf } from "./support/plans.ts"

const rows = 20_000
const batch = 512
const same = <A>(value: A) => Array.from({ length: batch }, () => value)

const fill = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  yield* sql.unsafe(`insert into purser.run_rows (run_id, line, charge_key, namespace, customer_id, billing_period, amount_minor, currency, stripe_customer_id)
    select 'run', i, md5(i::text), 'n', 'c' || i, '2026-11', 1000, 'usd', 'cus_' || i from generate_series(1, ${rows}) as i`)
  yield* sql.unsafe(Run.lockRun, [text("run")])
  yield* sql.unsafe(Run.planRows, [text("run"), integer(0), integer(rows)])
  yield* sql.unsafe(Run.setPlanned, [text("run"), BigInt(rows), 0n])
  yield* sql.unsafe(`update purser.charges set state = case when n % 50 = 0 then 'declined' when n % 50 = 1 then 'claimed' else 'succeeded' end, lease_epoch = 1,
    lease_until = case when n % 50 = 1 then planned_at + n * interval '1 millisecond' end, first_claimed_at = planned_at, release_due = n % 500 = 0, unpaid = n % 50 = 0,
    next_attempt_at = case when n % 50 = 0 then planned_at + n * interval '1 second' end
    from (select line as n, charge_key as k from purser.run_rows) r where k = charge_key`)
  yield* sql.unsafe(`insert into purser.refunds (refund_key, charge_key, refund_id, billing_period, currency, amount_minor, actor, note, state, payment_intent_id,
      lease_until, requested_at, updated_at)
    select charge_key, charge_key, '1', '2026-11', 'usd', 1000, 'a', 'n', case when line % 100 = 0 then 'pending' else 'succeeded' end, 'pi',
      case when line % 100 = 0 then purser.now() end, purser.now(), purser.now() from purser.run_rows`)
  for (const pages of [pagesOfLeases, pagesOfRanOut]) yield* sql.unsafe(pages)
  yield* sql.unsafe(`insert into purser.charge_event_pages (page, at, keys, seqs, to_states, attempts)
    select purser.next_event_page(), purser.now(), array[md5(i::text)], array[2], array['claimed'], array[1] from generate_series(1, 5000) as i`)
  yield* sql.unsafe(Cap.open, [text("n"), text("2026-11"), text("usd"), 1_000_000_000n, integer(100), 1_000_000_000n, text(null)])
  yield* sql.unsafe(`insert into purser.cap_reservations (charge_key, namespace, billing_period, currency, attempt, amount_minor, reserved_at)
    select charge_key, namespace, billing_period, currency, 1, amount_minor, purser.now() from purser.charges`)
  yield* sql.unsafe("analyze purser.charges, purser.run_rows, purser.charge_event_pages, purser.refunds, purser.cap_reservations")
})

const statements = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const found = yield* sql.unsafe<{ charge_key: string }>(`select charge_key from purser.charges where state = 'claimed' limit ${batch}`)
  const keys = texts(found.map((row) => row.charge_key))
  const some = <A>(value: A) => found.map(() => value)
  const nulls = texts(some(null))
  const key = text(found[0]!.charge_key)
  const page = [text("run"), integer(rows / 2), integer(1000)]
  const alike = (of: typeof keys) => [
    of, text("n"), text("2026-11"), text("usd"), bigints(same(1000)), texts(same("cus")), texts([]), text("w"), double(1), text(null), texts(same("one")), texts(same("pm")),
    boolean(true), bigints([]), texts([])
  ]
  return Object.entries({
    claim: [Writes.claim, [
      texts(Array.from({ length: batch }, (_, index) => index.toString(16).padStart(32, "f"))), texts(same("n")), texts(same("c")), texts(same("2026-11")),
      texts(same(null)), bigints(same(1000)), texts(same("usd")), texts(same("cus")), texts(same(null)), booleans(same(false)), texts(same("w")), double(1),
      texts(same(null)), integers(same(0))
    ]],
    begin: [First.begin, [
      texts(Array.from({ length: batch }, (_, index) => index.toString(16).padStart(32, "f"))), texts(same("n")), texts(same("c")), texts(same("2026-11")),
      texts(same(null)), bigints(same(1000)), texts(same("usd")), texts(same("cus")), texts(same(null)), booleans(same(false)), texts(same("w")), double(1),
      texts(same(null)), texts(same("one")), texts(same("pm")), boolean(true), bigints([]), texts([])
    ]],
    beginNew: [First.beginNew, [
      ...alike(texts(Array.from({ length: batch }, (_, index) => index.toString(16).padStart(32, "f")))), texts(same("c")), texts([]), boolean(false)
    ]],
    beginOne: [First.beginOne, [
      text("f".repeat(32)), text("n"), text("2026-11"), text("usd"), 1000n, text("cus"), text(null), text("w"), double(1), text(null), text("one"), text("pm"), text("c"), text(null),
      boolean(false)
    ]],
    beginPlanned: [First.beginPlanned, alike(keys)],
    settlePaid: [Writes.settlePaid, [keys, text("w"), texts(some("pi")), nulls, bigints(some(1))]],
    settleOne: [Writes.settleOne, [key, text("w"), text("pi"), text(null), 1n]],
    attachFirst: [Writes.attachFirst, [keys, texts(some("w")), bigints(some(1)), integers(some(1)), texts(some("pi")), nulls]],
    attach: [Writes.attach, [keys, texts(some("w")), bigints(some(1)), integers(some(1)), texts(some("pi")), nulls]],
    settle: [Writes.settle, [
      keys, texts(some("w")), bigints(some(1)), integers(some(1)), nulls, texts(some("succeeded")), texts(some("pi")), nulls, bigints(some(1)), nulls, nulls,
      nulls, doubles(some(0)), nulls, nulls, doubles(some(0))
    ]],
    extend: [Writes.extend, [keys, bigints(some(1)), double(1)]],
    handBack: [Writes.handBack, [keys, texts(some("w")), bigints(some(1)), doubles(some(1)), texts(some("x"))]],
    markReleased: [Writes.markReleased, [keys, integers(some(1))]],
    renew: [Writes.renew, [key, text("w"), 1n, integer(1), text("pi")]],
    quarantine: [Writes.quarantine, [key, text("w"), text("x")]],
    turnPages: [Pages.turnPages, [integer(16)]],
    takeExpired: [TakeOver.takeExpired, [text("w"), integer(batch), double(1)]],
    releaseDue: [Reads.releaseDue, [integer(batch)]],
    attemptsDue: [Reads.attemptsDue, [integer(batch)]],
    refundCharge: [Refund.lockCharge, [key]],
    refundHeld: [Refund.held, [key, text("pi_1")]],
    refundStored: [Refund.stored, [key]],
    refundTake: [Refund.take, [key, text("w"), double(1)]],
    refundList: [Refund.list, [key]],
    refundTakeExpired: [Refund.takeExpired, [text("w"), integer(batch), double(1)]],
    find: [Reads.find, [key]],
    events: [Reads.events, [key]],
    termsOf: [Run.termsOf, [text("run"), keys]],
    pending: [Run.pending, [...page, integer(rows)]],
    unpaid: [Run.unpaid, [...page, integer(rows), texts(["declined"])]],
    report: [Run.report, page]
  } satisfies Record<string, readonly [string, ReadonlyArray<unknown>]>)
})

for (const [name, database] of TestDatabase.layers) {
  layer(database, { timeout: 120_000 })(`plans on ${name}`, (it) => {
    it.effect("reads no table from end to end", () =>
      Effect.gen(function*() {
        const sql = yield* SqlClient.SqlClient
        yield* fill
        for (const [operation, [statement, params]] of yield* statements) {
          const own = yield* planOf(statement, params)
          const generic = yield* genericPlanOf(operation, statement, params)
          for (const plan of [own, generic]) {
            assert.match(plan, /Index (Only )?Scan/, operation)
            assert.notMatch(plan, /Seq Scan on (charges|charge_event_pages|charge_objects|run_rows|cap_reservations)/, operation)
          }
        }
        // What a function does inside is in no plan, and its plans are made anew for the first five calls.
        const keys = texts(Array.from({ length: batch }, (_, index) => index.toString(16).padStart(32, "e")))
        const { looks, whole } = yield* readsOf("cap_reservations", Effect.gen(function*() {
          for (let times = 0; times < 7; times++) {
            // What a first claim asks when it has locked the cap.
            yield* sql.unsafe("select purser.any_reserved($1::text[])", [keys])
            yield* sql.unsafe(Cap.reserve, [keys, texts(same("n")), texts(same("2026-11")), texts(same("usd")), integers(same(1)), bigints(same(1)), booleans(same(false))])
            yield* sql.unsafe(Cap.release, [keys, integers(same(1))])
          }
        }))
        assert.strictEqual(whole, 0)
        assert.isAbove(looks, 0)
      }), 120_000)
  })
}
