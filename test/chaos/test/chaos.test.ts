/**
 * A part of `pnpm chaos` that takes seconds, and what the rest of it rests on: that a seed is a schedule, that the judge of the database sees
 * what is wrong, that growth is told from noise.
 */
import { assert, describe, it } from "@effect/vitest"
import { Database } from "@purser/postgres"
import { postgresUrl } from "@purser/postgres/TestDatabase"
import { StripeSim } from "@purser/stripe-sim"
import { proxyTo } from "@purser/test-e2e/src/Proxy.ts"
import { rngOf } from "@purser/test-simulation/src/Rng.ts"
import { Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { billsOf, periodOf } from "../src/Billing.ts"
import type { Cluster } from "../src/Cluster.ts"
import { faultKinds, kindsOf, scheduleOf, transports } from "../src/Faults.ts"
import { growth, type Holding, table } from "../src/Holdings.ts"
import { judge } from "../src/Judge.ts"
import { describeFailure, type Part, play } from "../src/Play.ts"

/** A database of the test run's server, behind a proxy. The server itself is other tests' too, and stays alone. */
const borrowed = Effect.gen(function*() {
  const url = new URL(Redacted.value(yield* postgresUrl))
  const proxy = yield* proxyTo(Number(url.port))
  url.hostname = "127.0.0.1"
  url.port = String(proxy.port)
  const alone = Effect.die(new Error("Bug: this server is not ours to stop"))
  const cluster: Cluster = { createDatabase: () => Effect.succeed(url.href), proxy, restart: () => alone, failOver: alone, isReplicated: false }
  return { cluster, url: url.href }
})

describe("chaos", () => {
  it.live("workers and a run are killed, connections to all sides reset: one payment for each bill; and a judge that is lied to says so", () =>
    Effect.scoped(Effect.gen(function*() {
      const { cluster, url } = yield* borrowed
      const part: Part = {
        seed: "1", transport: "req-rep", store: { kind: "server", cluster, name: "smoke" }, rows: 60, each: 1,
        only: ["kill-worker", "kill-producer", "reset-messages", "reset-stripe", "reset-database"]
      }
      const { payments, struck, violations } = yield* play(part)
      assert.deepStrictEqual([violations, payments], [[], 59], describeFailure(part, violations, struck))

      // The same ledger against books that know nothing of it, and with one row that was meddled with.
      const database = Database.layerUrl(Redacted.make(url), { maxConnections: 2 })
      yield* Effect.provide(Effect.flatMap(SqlClient.SqlClient, (sql) => sql`update purser.charges set attempt = attempt + 1 where customer_id = 'c7'`), database)
      const bills = billsOf(60)
      const account = { succeeded: 59, declined: 1, paidMinor: bills.reduce((sum, { amountMinor, declined }) => declined ? sum : sum + amountMinor, 0) }
      const sim = yield* StripeSim.makeInProcess()
      const lied = yield* judge({ database, sim, period: periodOf(1), bills: [...bills, { customer: "unknown", amountMinor: 1000, declined: false }], account })
      assert.strictEqual(lied.filter((line) => line.endsWith("recorded as paid, and Stripe has no payment")).length, 59)
      for (const part of ["c7: the trail ends at attempt 1, the row is at 2", "unknown: the ledger has forgotten it", "the run accounts for"]) {
        assert.isTrue(lied.some((line) => line.startsWith(part)), part)
      }
    })), 180_000)

  it("draws the same schedule from the same seed, with every kind that a transport allows", () => {
    const drawn = new Set<string>()
    for (const transport of transports) {
      for (const store of ["server", "replicated", "folder"] as const) {
        const kinds = kindsOf(transport, store)
        const schedule = scheduleOf(rngOf("7"), kinds, 1000, 2)
        assert.deepStrictEqual(schedule, scheduleOf(rngOf("7"), kinds, 1000, 2))
        assert.notDeepEqual(schedule, scheduleOf(rngOf("8"), kinds, 1000, 2))
        assert.deepStrictEqual(new Set(schedule.map(({ kind }) => kind)), new Set(kinds))
        assert.isTrue(schedule.every(({ at }, index) => at > 0 && at <= 900 && at >= (schedule[index - 1]?.at ?? 0)))
        for (const kind of kinds) drawn.add(kind)
      }
    }
    assert.sameMembers([...drawn], Object.keys(faultKinds))
  })
})

describe("what a process holds", () => {
  const look = (round: number, more: Partial<Holding> = {}): Holding =>
    ({ round, name: "worker", heapMb: 30 + round % 3, externalMb: 5, residentMb: 120 + round % 7, descriptors: 40 + round % 4, sockets: 12, ...more })
  const looks = (of: (round: number) => Holding) => Array.from({ length: 40 }, (_, round) => of(round))

  it("grows when it does, and not by what differs from look to look", () => {
    assert.deepStrictEqual(growth(looks(look)), [])
    assert.deepStrictEqual(growth(looks((round) => look(round, { heapMb: 30 + round / 2 }))).map((line) => line.slice(0, 20)), ["worker: heapMb grew "])
    assert.deepStrictEqual(growth(looks((round) => look(round, { sockets: 12 + round, descriptors: 40 + round }))).length, 2)
    assert.deepStrictEqual(growth(looks(look).slice(0, 3)), ["worker: 3 looks say nothing about growth"])
    // A cache that has filled is no growth.
    assert.deepStrictEqual(growth(looks((round) => look(round, { heapMb: round < 6 ? 20 : 45 }))), [])
    assert.include(table(looks(look)), "residentMb")
  })
})
