/** The desk of dunning looks every few seconds: whatever it asks walks an index of what is due, open or running, and no whole table. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import * as Dunning from "../src/internal/dunningSql.ts"
import { boolean, double, integer, text, texts } from "../src/internal/params.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { planOf } from "./support/plans.ts"

const rows = 20_000

const fill = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  yield* sql.unsafe(`insert into purser.charges (charge_key, namespace, customer_id, billing_period, amount_minor, currency, stripe_customer_id, state, planned_at, updated_at, settled_at,
      dunning_due)
    select md5(i::text), 'n', 'c' || i, '2026-11', 1000, 'usd', 'cus_' || i, case when i % 20 = 0 then 'declined' else 'succeeded' end, purser.now(), purser.now(), purser.now(), i % 200 = 0
    from generate_series(1, ${rows}) as i`)
  // Years of cases, of which a few hundred are open.
  yield* sql.unsafe(`insert into purser.dunning_cases (case_id, charge_key, number, stripe_customer_id, state, opened_attempt, opened_by, reason, opened_at, closed_at, workflow, step)
    select md5(i::text) || '.1', md5(i::text), 1, 'cus_' || i, case when i % 50 = 0 then 'open' else 'paid' end, 1, 'a', 'r', purser.now() - i * interval '1 minute',
      case when i % 50 <> 0 then purser.now() end, case when i % 500 = 0 then 'due' when i % 50 = 0 then 'running' else 'over' end, 1 from generate_series(1, ${rows}) as i`)
  yield* sql.unsafe("analyze purser.charges, purser.dunning_cases")
})

const key = text("00000000000000000000000000000000")
const id = text("00000000000000000000000000000000.1")
const statements: Readonly<Record<string, readonly [string, ReadonlyArray<unknown>]>> = {
  open: [Dunning.open, [key, text("a"), text("r")]],
  openCase: [Dunning.openCase, [key]],
  openDue: [Dunning.openDue, [text("a"), text("r"), double(1), integer(200)]],
  toStart: [Dunning.toStart, [integer(200)]],
  started: [Dunning.started, [id]],
  running: [Dunning.running, [text(""), integer(200)]],
  look: [Dunning.look, [id, integer(1)]],
  waits: [Dunning.waits, [id, integer(1), double(1), text(null)]],
  followed: [Dunning.followed, [text("n"), text("2026-11"), text("usd")]],
  moved: [Dunning.moved, [text(""), integer(200)]],
  close: [Dunning.close, [id, text("paid"), text("a"), text("r")]],
  finished: [Dunning.finished, [id]],
  offer: [Dunning.offer, [text("cus_50"), text("pm_1"), text("a"), text("r"), text(null), texts([])]],
  roomMade: [Dunning.roomMade, [text("n"), text("2026-11"), text("usd")]],
  openOf: [Dunning.openOf, [text("cus_50")]],
  list: [Dunning.list, [boolean(true), integer(100)]],
  casesOf: [Dunning.casesOf, [key]]
}

// One planner says enough: filling the tables takes most of the time.
for (const [name, database] of TestDatabase.layers.filter(([name]) => name === "postgres")) {
  layer(database, { timeout: 120_000 })(`plans of dunning on ${name}`, (it) => {
    it.effect("reads no table from end to end", () =>
      Effect.gen(function*() {
        yield* fill
        for (const [operation, [statement, params]] of Object.entries(statements)) {
          const plan = yield* planOf(statement, params)
          assert.notMatch(plan, /Seq Scan on (charges|dunning_cases)/, `${operation}:\n${plan}`)
        }
      }))
  })
}
