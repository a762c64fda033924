/** Case F5: the end of a period, with clocks that pass it in the middle of a charge. */
import { assert, describe, it } from "@effect/vitest"
import { type BillingPeriod, Ledger, SpendCap } from "@purser/core"
import { ChargePipeline } from "@purser/engine"
import { DatabaseClock } from "@purser/postgres"
import * as TestDatabase from "@purser/postgres/TestDatabase"
import { chargeFor } from "@purser/testkit"
import { Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { advance, Crash, openCap, payments, world } from "../src/World.ts"

const monthAt = (ms: number) => new Date(ms).toISOString().slice(0, 7)

for (const [name, database] of TestDatabase.layers) {
  describe(`the border of a period on ${name}`, () => {
    it.live("F5: reserved before midnight and settled after it, a charge counts in its own period; the next one begins at nothing, and a full one is no word about it", () =>
      Effect.gen(function*() {
        const nowMs = yield* DatabaseClock.nowMs
        // The end of next month, which is never near.
        const midnight = Date.UTC(new Date(nowMs).getUTCFullYear(), new Date(nowMs).getUTCMonth() + 2, 1)
        const [ending, starting] = [monthAt(midnight - 1), monthAt(midnight)] as [BillingPeriod, BillingPeriod]
        const cap = yield* SpendCap
        const pipeline = yield* ChargePipeline
        const used = Effect.map(cap.report(), (caps) => caps.map(({ billingPeriod, reservedMinor }) => [billingPeriod, reservedMinor]))
        const acme = chargeFor("acme", ending)
        yield* openCap(acme, 1000n)
        // Wide, so that it would take what belongs to the other.
        yield* openCap(chargeFor("beta", starting), 10_000n)

        yield* advance(midnight - nowMs - 30_000)
        const held = yield* (yield* Crash).holdAt("after-reserve")
        const charging = yield* Effect.forkChild(pipeline.charge(acme))
        yield* held.arrived
        yield* advance("31 seconds")
        yield* held.go
        assert.strictEqual((yield* Fiber.join(charging))._tag, "Succeeded")
        const sql = yield* SqlClient.SqlClient
        const [at] = yield* sql<{ readonly reserved: Date; readonly settled: Date }>`select c.first_claimed_at as reserved, c.settled_at as settled
          from purser.held_room r join purser.charges c using (charge_key) where charge_key = ${acme.chargeKey}`
        assert.isTrue(at!.reserved.getTime() < midnight && at!.settled.getTime() >= midnight)
        assert.deepStrictEqual(yield* used, [[ending, 1000n], [starting, 0n]])

        assert.strictEqual((yield* pipeline.charge(chargeFor("beta", starting)))._tag, "Succeeded")
        const late = yield* pipeline.charge(chargeFor("late", ending))
        assert.deepStrictEqual([late._tag, late._tag === "Rejected" ? late.code : ""], ["Rejected", "cap_exceeded"])
        assert.strictEqual((yield* pipeline.charge(chargeFor("gamma", starting, { amountMinor: 100 })))._tag, "Succeeded")
        assert.deepStrictEqual(yield* used, [[ending, 1000n], [starting, 1100n]])

        // What was full is what the ledger says now, not what somebody remembers.
        yield* cap.raise({ ...acme, expectedMinor: 2000n, headroomPercent: 100, actor: "ada", reason: "late invoices" })
        assert.strictEqual((yield* pipeline.charge(chargeFor("later", ending)))._tag, "Succeeded")
        assert.deepStrictEqual(yield* used, [[ending, 2000n], [starting, 1100n]])
        assert.deepStrictEqual([yield* payments(acme), (yield* (yield* Ledger).find(acme.chargeKey))?.request.billingPeriod], [1, ending])
      }).pipe(Effect.provide(world(database))), 60_000)
  })
}
