/** The event log on both databases, and that no event is stepped over whatever its writers do. */
import { EventLog, Ledger } from "@purser/core"
import * as EventLogConformance from "@purser/testkit/EventLogConformance"
import { chargeFor } from "@purser/testkit/chargeFor"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Ref } from "effect"
import { SqlClient } from "effect/sql"
import { PgEventLog } from "../src/PgEventLog.ts"
import { PgLedger } from "../src/PgLedger.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { linesOf } from "./support/eventPages.ts"

const stores = Layer.merge(PgEventLog.layer, PgLedger.layer)

const bounds = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql.unsafe<{ low: bigint; high: bigint }>("select low, high from purser.feed_head")
  return row!
})

/** Gives places until none is left open. Transactions of other tests on the server keep the window open for as long as they run. */
const untilPassed = Effect.gen(function*() {
  const [sql, log] = [yield* SqlClient.SqlClient, yield* EventLog]
  for (;;) {
    const head = yield* log.advance(1000)
    const { high, low } = yield* bounds
    if (low === high) return head
    yield* sql.unsafe("select pg_sleep(0.02)")
  }
})

/** What nobody else is on the server of: the suite's own transactions are over when it looks. */
const undisturbed = Layer.effect(EventLog, Effect.gen(function*() {
  const [sql, log] = [yield* SqlClient.SqlClient, yield* EventLog]
  const passed = Effect.orDie(untilPassed).pipe(Effect.provideService(SqlClient.SqlClient, sql), Effect.provideService(EventLog, log))
  return EventLog.of({ ...log, advance: (limit) => Effect.flatMap(log.advance(limit), (head) => head.more ? Effect.succeed(head) : passed) })
})).pipe(Layer.provide(PgEventLog.layer))

for (const [name, database] of TestDatabase.layers) {
  EventLogConformance.suite(name, Layer.merge(undisturbed, PgLedger.layer).pipe(Layer.provide(database)))
}

const keysFrom = Effect.fnUntraced(function*(after: number) {
  const log = yield* EventLog
  return (yield* log.read({ epoch: null, sequence: after }, 100_000)).map((event) => `${event.chargeKey} ${event.chargeSequence}`)
})

const allKeys = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql.unsafe<{ key: string }>("select charge_key || ' ' || seq as key from purser.charge_events")
  return rows.map(({ key }) => key)
})

/** A charge with one event, written in the caller's transaction. */
const insertCharge = (key: string) =>
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    yield* sql.unsafe(`insert into purser.charges (charge_key, namespace, customer_id, billing_period, amount_minor, currency, stripe_customer_id, state,
      planned_at, updated_at) values (md5('${key}'), 'n', '${key}', '2026-11', 100, 'usd', 'cus', 'planned', purser.now(), purser.now())`)
    yield* sql.unsafe(linesOf(`select md5('${key}') as charge_key, 1 as seq, null as from_state, 'planned' as to_state, null as worker, null as detail`))
  })

// On PGlite transactions queue for the one backend: nothing overtakes a transaction that is open.
layer(Layer.provideMerge(stores, TestDatabase.layerPostgres), { timeout: 120_000 })("the order of events on postgres", (it) => {
  it.effect("has a place for what commits later under a lower number, and waits for nobody", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const log = yield* EventLog
      const before = (yield* log.advance(1000)).sequence
      const written = yield* Deferred.make<void>()
      const commit = yield* Deferred.make<void>()
      const slow = yield* Effect.forkChild(sql.withTransaction(
        Effect.gen(function*() {
          yield* insertCharge("slow")
          yield* Deferred.succeed(written, undefined)
          yield* Deferred.await(commit)
        })
      ))
      yield* Deferred.await(written)
      yield* Effect.ignore(sql.withTransaction(Effect.andThen(insertCharge("rolled-back"), Effect.fail("no"))))
      yield* insertCharge("quick")
      for (let n = 0; n < 5; n++) yield* log.advance(1000)
      // The later one has its place while the earlier one runs, and the lower end of the window stays below that one.
      assert.strictEqual((yield* keysFrom(before)).length, 1)
      const during = yield* bounds
      assert.isBelow(Number(during.low), Number(during.high) - 1)
      // That place stays as long as it tells that the event has one.
      assert.isAtMost((yield* log.trim(0)).trimmedTo, before)
      yield* Deferred.succeed(commit, undefined)
      yield* Fiber.join(slow)
      const after = yield* log.advance(1000)
      assert.strictEqual(after.sequence, before + 2)
      const events = yield* log.read({ epoch: null, sequence: before }, 10)
      assert.deepStrictEqual(events.map(({ customerId }) => customerId), ["quick", "slow"])
      // Nobody runs any more: the hole of what was rolled back is passed.
      yield* untilPassed
    }))

  it.effect("goes on after the database was restored at another server", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const log = yield* EventLog
      const before = (yield* log.advance(1000)).sequence
      // As a dump brings it along: an id that this server has not reached.
      yield* sql.unsafe("update purser.feed_head set bound = '9000000000000'::xid8, mark = high, low = 0")
      yield* insertCharge("restored")
      yield* untilPassed
      assert.strictEqual((yield* log.head).sequence, before + 1)
    }))

  it.effect("refuses to give places in a transaction that has begun to write", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const log = yield* EventLog
      const error = yield* Effect.flip(sql.withTransaction(Effect.andThen(insertCharge("inside"), log.advance(10))))
      assert.match(error.message, /first statement/)
    }))
})

for (const [name, database] of TestDatabase.layers) {
  layer(Layer.provideMerge(stores, database), { timeout: 120_000 })(`the order of events of many writers on ${name}`, (it) => {
    it.effect("gives each event exactly one place while many write, some roll back, and several give places", () =>
      Effect.gen(function*() {
        const sql = yield* SqlClient.SqlClient
        const log = yield* EventLog
        const ledger = yield* Ledger
        const running = yield* Ref.make(true)
        const publisher = Effect.gen(function*() {
          while (yield* Ref.get(running)) {
            yield* log.advance(17)
            yield* Effect.yieldNow
          }
        })
        const publishers = yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(publisher))
        const write = (n: number): Effect.Effect<unknown, unknown, SqlClient.SqlClient> =>
          n % 5 === 0
            ? Effect.ignore(sql.withTransaction(Effect.andThen(insertCharge(`gone-${n}`), Effect.fail("no"))))
            : n % 5 === 1
            ? sql.withTransaction(Effect.gen(function*() {
              yield* insertCharge(`pair-${n}-a`)
              yield* sql.unsafe("select pg_sleep(0.005)")
              yield* insertCharge(`pair-${n}-b`)
            }))
            : Effect.asVoid(ledger.claim(chargeFor(`many-${n}`, "2026-11"), "w1"))
        yield* Effect.forEach(Array.from({ length: 600 }, (_, n) => n), write, { concurrency: 6, discard: true })
        yield* Ref.set(running, false)
        yield* Effect.forEach(publishers, Fiber.join)
        while ((yield* log.advance(17)).more) yield* Effect.void
        yield* log.advance(1000)
        const placed = yield* keysFrom(0)
        assert.strictEqual(new Set(placed).size, placed.length)
        assert.sameMembers(placed, yield* allKeys)
        assert.isAbove(placed.length, 590)
        const sequences = (yield* log.read({ epoch: null, sequence: 0 }, 100_000)).map(({ sequence }) => sequence)
        assert.deepStrictEqual(sequences, sequences.map((_, index) => index + 1))
      }))
  })
}
