/**
 * The promise of the lease pages: every charge with a lease stands in a page that is turned no later than the lease ends, or in one
 * of those that ran out. If it were broken, a charge whose worker died would be nobody's for ever.
 */
import { assert, layer } from "@effect/vitest"
import { type ClaimedCharge, Ledger, SpendCap } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { Effect, Layer, Random } from "effect"
import { SqlClient } from "effect/sql"
import * as DatabaseClock from "../src/DatabaseClock.ts"
import { hasten } from "../src/internal/attentionSql.ts"
import { handBack } from "../src/internal/ledgerBatches.ts"
import { text } from "../src/internal/params.ts"
import { turnAll } from "../src/internal/upkeep.ts"
import { PgLedger } from "../src/PgLedger.ts"
import { PgRunLedger } from "../src/PgRunLedger.ts"
import { PgSpendCap } from "../src/PgSpendCap.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { attach, endAside, lease, misplaced, outcomes, paged, play, settle, unpaged } from "./support/leasePlay.ts"

const hourMs = 3_600_000
const plays = { pglite: { seeds: 4, steps: 60, atOnce: 1 }, postgres: { seeds: 6, steps: 40, atOnce: 3 } }

const claim = (customer: string) =>
  Effect.flatMap(Ledger, (ledger) =>
    Effect.flatMap(ledger.claim(chargeFor(customer, "2026-10"), "w"), (answer) =>
      answer._tag === "Claimed" ? Effect.succeed(answer.charge) : Effect.die(new Error(`expected Claimed, got ${answer._tag}`))))
/** Turns the pages that were just written. */
const turn = Effect.gen(function*() {
  yield* DatabaseClock.advance("10 seconds")
  yield* turnAll(yield* SqlClient.SqlClient)
})
/** Turns also the page in which a charge is since its first lease. */
const forget = Effect.andThen(DatabaseClock.advance(lease), turn)

for (const [name, database] of TestDatabase.layers) {
  const stores = Layer.provideMerge(Layer.mergeAll(PgLedger.layerWith({ lease }), PgRunLedger.layer, PgSpendCap.layer), database)
  layer(stores, { timeout: 120_000, excludeTestServices: true })(`lease pages on ${name}`, (it) => {
    const { atOnce, seeds, steps } = plays[name]
    for (let seed = 1; seed <= seeds; seed++) {
      it.effect(`hold every charge with a lease, whatever happens, and no other when they were turned: seed ${seed}`, () =>
        Random.withSeed(play(`${name}-${seed}`, steps, atOnce), `seed ${seed}`))
    }

    // Each begins when all pages were turned, so that only what it writes itself can hold the charge in time.
    const sets: Record<string, (charge: ClaimedCharge, ledger: Ledger["Service"]) => Effect.Effect<unknown, unknown, SqlClient.SqlClient>> = {
      "a hand-back": ({ lease: held }, ledger) => ledger.handBack(held, 0, "stopped"),
      "a poll": (charge, ledger) => settle(ledger, charge, outcomes.processing),
      "a look at what waits": Effect.fnUntraced(function*(charge, ledger) {
        yield* settle(ledger, charge, outcomes.processing, hourMs)
        yield* forget
        assert.isDefined(yield* ledger.takeWaiting(charge.lease.chargeKey, "w2"))
      }),
      "a look at what asked for the customer": Effect.fnUntraced(function*(charge, ledger) {
        yield* settle(ledger, charge, outcomes.requiresAction)
        yield* forget
        assert.isDefined(yield* ledger.takeWaiting(charge.lease.chargeKey, "w2"))
      }),
      "a claim of what was reopened": Effect.fnUntraced(function*({ lease: { chargeKey }, ...charge }, ledger) {
        yield* settle(ledger, { ...charge, lease: { chargeKey, worker: "w", epoch: 1 } }, outcomes.rejected)
        yield* forget
        assert.strictEqual(yield* ledger.reopen({ chargeKeys: [chargeKey], from: ["rejected"], actor: "ada", reason: "room" }), 1)
        assert.deepStrictEqual(yield* misplaced, [])
        assert.strictEqual((yield* ledger.claim(charge.request, "w2"))._tag, "Claimed")
      }),
      "a reopening": Effect.fnUntraced(function*(charge, ledger) {
        yield* attach(ledger, charge)
        yield* settle(ledger, charge, outcomes.declined)
        yield* turn
        assert.strictEqual(yield* ledger.reopen({ chargeKeys: [charge.lease.chargeKey], from: ["declined"], actor: "ada", reason: "a new card" }), 1)
      }),
      "the end of a quarantine": Effect.fnUntraced(function*(charge, ledger) {
        yield* ledger.quarantine(charge.lease, "differs")
        yield* turn
        assert.lengthOf(yield* endAside(charge.lease.chargeKey), 1)
      }),
      "an adoption": Effect.fnUntraced(function*(charge, ledger) {
        yield* settle(ledger, charge, outcomes.rejected)
        yield* forget
        assert.isDefined(yield* ledger.adopt({ request: charge.request, paymentIntentId: "pi_found", paymentMethod: null, worker: "r" }))
      }),
      "an adoption of what was never seen": (_, ledger) =>
        Effect.map(ledger.adopt({ request: chargeFor("unseen", "2026-10"), paymentIntentId: "pi_unseen", paymentMethod: null, worker: "r" }), assert.isDefined),
      "a take-over": Effect.fnUntraced(function*({ lease: { chargeKey } }, ledger) {
        yield* DatabaseClock.advance(lease)
        assert.include((yield* ledger.takeExpired("s", 1000)).map((taken) => taken.lease.chargeKey), chargeKey)
      }),
      "a late holder's extension": Effect.fnUntraced(function*({ lease: held }, ledger) {
        yield* DatabaseClock.advance(lease)
        yield* turn
        assert.isTrue(yield* ledger.extend(held))
        assert.notInclude((yield* ledger.takeExpired("s", 1000)).map((taken) => taken.lease.chargeKey), held.chargeKey)
      }),
      "a person's word about what was handed back for later": Effect.fnUntraced(function*({ lease: held }, ledger) {
        yield* ledger.handBack(held, hourMs, "an outage")
        yield* forget
        const sql = yield* SqlClient.SqlClient
        const [row] = yield* sql.unsafe(hasten, [text(held.chargeKey), text("ada"), text("it is over")])
        assert.isDefined(row)
      }),
      "an extension of what was handed back for later": Effect.fnUntraced(function*({ lease: held }, ledger) {
        yield* ledger.handBack(held, hourMs, "an outage")
        yield* forget
        assert.isTrue(yield* ledger.extend(held))
      })
    }
    for (const [act, set] of Object.entries(sets)) {
      it.effect(`have the charge after ${act}`, () =>
        Effect.gen(function*() {
          const ledger = yield* Ledger
          const charge = yield* claim(act)
          yield* turn
          yield* set(charge, ledger)
          assert.deepStrictEqual([yield* unpaged, yield* misplaced], [[], []])
          assert.include((yield* paged).join(), charge.lease.chargeKey)
        }))
    }

    it.effect("have each charge whose first claim is alone and takes its room, and are dropped by the dozen when such charges are paid", () =>
      Effect.gen(function*() {
        const [cap, sql] = [yield* SpendCap, yield* SqlClient.SqlClient]
        const requests = Array.from({ length: 40 }, (_, index) => chargeFor(`alone-${index}`, "2026-12", { namespace: "alone" }))
        yield* cap.open({ ...requests[0]!, expectedMinor: 1_000_000n, headroomPercent: 100 })
        const pages = Effect.map(sql.unsafe("select 1 from purser.lease_pages where keys && $1::text[]", [requests.map(({ chargeKey }) => chargeKey)]), (rows) => rows.length)
        yield* Effect.gen(function*() {
          const ledger = yield* Ledger
          for (const request of requests) {
            const answer = yield* ledger.claim(request, "w", { room: true })
            if (answer._tag !== "Claimed" || answer.hasRoom !== true) return yield* Effect.die(new Error(answer._tag))
            assert.deepStrictEqual(yield* unpaged, [])
            yield* attach(ledger, answer.charge)
            yield* settle(ledger, answer.charge, outcomes.succeeded)
            assert.isAtMost(yield* pages, 17)
          }
        }).pipe(Effect.provide(Layer.fresh(PgLedger.layerWith({ lease }))))
        // Not each by the claim after it.
        assert.isAtLeast(yield* pages, 2)
      }))

    it.effect("stay where the database was set back, and gave the number of a page that may go to another one", () =>
      Effect.gen(function*() {
        const sql = yield* SqlClient.SqlClient
        for (const together of [1, 3]) {
          const requests = Array.from({ length: 2 * together }, (_, index) => chargeFor(`set-back-${together}-${index}`, "2026-12", { namespace: "set back" }))
          const claimed = (some: typeof requests, held: Ledger["Service"]) => Effect.forEach(some, (request) =>
            Effect.flatMap(held.claim(request, "w"), (answer) => answer._tag === "Claimed" ? Effect.succeed(answer.charge) : Effect.die(new Error(answer._tag))), { concurrency: "unbounded" })
          yield* Effect.gen(function*() {
            const ledger = yield* Ledger
            const charges = yield* claimed(requests.slice(0, together), ledger)
            yield* Effect.forEach(charges, (charge) => attach(ledger, charge), { concurrency: "unbounded" })
            yield* Effect.forEach(charges, (charge) => settle(ledger, charge, outcomes.succeeded), { concurrency: "unbounded" })
            // What came after the pages were written is lost, and others write theirs.
            yield* sql.unsafe("update purser.lease_pages set keys = array[md5('another ' || id)] where keys && $1::text[]", [requests.map(({ chargeKey }) => chargeKey)])
            const others = yield* sql.unsafe("select id from purser.lease_pages order by id")
            yield* claimed(requests.slice(together), ledger)
            const left = yield* sql.unsafe("select id from purser.lease_pages order by id")
            assert.deepStrictEqual(left.slice(0, others.length), others)
          }).pipe(Effect.provide(Layer.fresh(PgLedger.layerWith({ lease }))))
        }
      }))

    it.effect("are due when the first lease of a batch ends, also of those that are turned together", () =>
      Effect.gen(function*() {
        const sql = yield* SqlClient.SqlClient
        const charges = yield* Effect.forEach(Array.from({ length: 12 }, (_, index) => index), (index) => Effect.map(claim(`batch-${index}`), ({ lease: held }) => ({ held, index })))
        yield* turn
        yield* handBack(sql)(charges.map(({ held, index }) => ({ lease: held, retryAfterMs: index * 1000, detail: "later" })))
        assert.deepStrictEqual(yield* unpaged, [])
        yield* handBack(sql)(charges.map(({ held, index }) => ({ lease: held, retryAfterMs: 60_000 + index * 1000, detail: "later" })))
        yield* turn
        assert.deepStrictEqual(yield* unpaged, [])
      }))

    it.effect("give a sweeper as many as it asked for, be there ever so many before them that somebody has claimed or settled since", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        yield* DatabaseClock.advance("4 hours")
        yield* Effect.forEach(yield* ledger.takeExpired("s", 1000), ({ lease: held }) => ledger.quarantine(held, "of another test"))
        const charges = yield* Effect.forEach(Array.from({ length: 9 }, (_, index) => index), (index) => claim(`swept-${index}`))
        yield* DatabaseClock.advance(lease)
        // What is taken over is as old as what is left: the pages of these stand first.
        yield* Effect.forEach(charges.slice(0, 5), ({ lease: held }) => ledger.handBack(held, 0, "first"))
        yield* Effect.forEach(charges.slice(5), ({ lease: held }) => ledger.handBack(held, 1, "then"))
        yield* turn
        yield* Effect.forEach(charges.slice(0, 3), ({ request }) => ledger.claim(request, "w2"))
        yield* Effect.forEach(charges.slice(3, 5), (charge) => settle(ledger, charge, outcomes.rejected))
        assert.lengthOf(yield* ledger.takeExpired("s", 2), 2)
        assert.lengthOf(yield* ledger.takeExpired("s", 2), 2)
        assert.lengthOf(yield* ledger.takeExpired("s", 2), 0)
        assert.deepStrictEqual(yield* unpaged, [])
      }))
  })
}
