/** What a console reads: the search against the whole table, runs against the run book, and what waits for a person. */
import { assert, describe, layer } from "@effect/vitest"
import { Attention, type ChargePlace, type ChargeQuery, ChargeSearch, ChargeKey, Ledger, OperatorTrail, Rejected, RunLedger, type RunRow, RunStats, WorkerBook, chargeKeyOf } from "@purser/core"
import { chargeFor } from "@purser/testkit"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { noteConflicts } from "../src/internal/attentionSql.ts"
import { bigints, integer, texts } from "../src/internal/params.ts"
import * as DatabaseClock from "../src/DatabaseClock.ts"
import { PgAttention } from "../src/PgAttention.ts"
import { PgChargeSearch } from "../src/PgChargeSearch.ts"
import { PgLedger } from "../src/PgLedger.ts"
import { PgOperatorTrail } from "../src/PgOperatorTrail.ts"
import { PgRunLedger } from "../src/PgRunLedger.ts"
import { PgRunStats } from "../src/PgRunStats.ts"
import { PgWorkerBook } from "../src/PgWorkerBook.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { linesOf } from "./support/eventPages.ts"
import { pagesOfLeases } from "./support/leasePages.ts"

const stores = Layer.mergeAll(PgLedger.layer, PgRunLedger.layer, PgChargeSearch.layer, PgRunStats.layer, PgAttention.layer, PgWorkerBook.layer, PgOperatorTrail.layer)

const rows = 270
/** Charges of two periods in every state; each tenth has a customer that shares its beginning with others. */
const fill = `insert into purser.charges (charge_key, namespace, customer_id, billing_period, amount_minor, currency, stripe_customer_id, state, planned_at,
    updated_at, payment_intent_id, outcome_payment_intent_id, received_minor, settled_at, lease_until, lease_worker, quarantine, first_claimed_at, unpaid)
  select md5(i::text), 'n', case when i % 10 = 0 then 'acme_' || i else 'cust_' || i end, case when i % 2 = 0 then '2026-07' else '2026-06' end, 1000 + i, 'usd', 'cus_' || i,
    s.state, purser.now(), purser.now(), case when s.state not in ('planned', 'claimed', 'rejected') then 'pi_' || i end,
    case when s.state in ('succeeded', 'declined', 'canceled') then 'pi_' || i end, case when s.state = 'succeeded' then 1000 + i end,
    case when s.state in ('succeeded', 'declined', 'rejected', 'canceled', 'requires_action') then purser.now() end,
    case when s.state in ('claimed', 'attached', 'processing') and i % 90 <> 11 then purser.now() + interval '1 hour' end, 'w1',
    case when s.state = 'attached' and i % 90 = 11 then 'differs' end, case when s.state <> 'planned' then purser.now() end,
    s.state in ('declined', 'rejected', 'canceled', 'requires_action')
  from generate_series(1, ${rows}) as i cross join lateral (select (array['planned','claimed','attached','processing','requires_action','succeeded','declined','rejected','canceled'])[1 + i % 9] as state) s`

/** Each object was attached, and the tenth part found at the end to be another one. */
const fillTrail = [
  linesOf(`select charge_key, 1 as seq, 'claimed' as from_state, case when n = 0 then state else 'attached' end as to_state, null as worker,
    case when n > 0 then payment_intent_id end as detail from (select *, row_number() over (order by charge_key) % 10 as n from purser.charges where payment_intent_id is not null) c`),
  "insert into purser.charge_objects (object, charge_key) select payment_intent_id, charge_key from purser.charges where payment_intent_id is not null"
]

const all = (query: ChargeQuery, limit: number) =>
  Effect.gen(function*() {
    const search = yield* ChargeSearch
    const found: Array<string> = []
    let after: ChargePlace | null = null
    for (let pages = 0; pages < 1000; pages++) {
      const page: { readonly charges: ReadonlyArray<{ readonly chargeKey: string }>; readonly next: ChargePlace | null } = yield* search.find(query, after, limit)
      found.push(...page.charges.map(({ chargeKey }) => chargeKey))
      if (page.next === null) return found
      after = page.next
    }
    return yield* Effect.die(new Error("the search does not end"))
  })

const run = (lines: ReadonlyArray<readonly [customer: string, amountMinor: number]>): ReadonlyArray<RunRow> =>
  lines.map(([customer, amountMinor], index) => {
    const request = chargeFor(customer, "2026-07", { amountMinor })
    return { line: index + 1, chargeKey: chargeKeyOf(request), request }
  })

describe.each(TestDatabase.layers)("what a console reads on %s", (_, database) => {
  layer(stores.pipe(Layer.provideMerge(database)), { timeout: 120_000 })("search", (it) => {
    it.effect("finds what the whole table has, each once, whatever the page's size", () =>
      Effect.gen(function*() {
        const sql = yield* SqlClient.SqlClient
        for (const statement of [fill, ...fillTrail, pagesOfLeases]) yield* sql.unsafe(statement)
        const keys = (where: string) => Effect.map(sql.unsafe<{ charge_key: string }>(`select charge_key from purser.charges where ${where}`), (found) => found.map((row) => row.charge_key).sort())
        const queries: ReadonlyArray<readonly [ChargeQuery, string]> = [
          [{}, "true"],
          [{ billingPeriod: "2026-07" }, "billing_period = '2026-07'"],
          [{ customer: { text: "acme_", whole: false } }, "customer_id like 'acme\\_%'"],
          [{ customer: { text: "acme_10", whole: true } }, "customer_id = 'acme_10'"],
          [{ customer: { text: "cust_1", whole: false }, state: "succeeded", billingPeriod: "2026-06" }, "customer_id like 'cust\\_1%' and state = 'succeeded' and billing_period = '2026-06'"],
          ...(["planned", "claimed", "attached", "processing", "requires_action", "succeeded", "declined", "rejected", "canceled"] as const).flatMap((state) => [
            [{ state }, state === "attached" ? "state = 'attached' and quarantine is null" : `state = '${state}'`] as const,
            [{ state, billingPeriod: "2026-06" }, `${state === "attached" ? "state = 'attached' and quarantine is null" : `state = '${state}'`} and billing_period = '2026-06'`] as const
          ]),
          [{ state: "quarantined" }, "quarantine is not null"],
          [{ paymentIntentId: "pi_6" }, "payment_intent_id = 'pi_6'"],
          [{ paymentIntentId: "pi_nobody" }, "false"]
        ]
        for (const [query, where] of queries) {
          for (const limit of [13, 1000]) {
            const found = yield* all(query, limit)
            assert.deepStrictEqual(found.toSorted(), yield* keys(where), `${JSON.stringify(query)} by ${limit}`)
          }
        }
        // A payment object is found in whatever state its charge is.
        for (const state of ["attached", "processing", "succeeded", "declined", "canceled"]) {
          const [row] = yield* sql.unsafe<{ payment_intent_id: string; charge_key: string }>(`select payment_intent_id, charge_key from purser.charges where state = '${state}' limit 1`)
          assert.deepStrictEqual(yield* all({ paymentIntentId: row!.payment_intent_id }, 10), [row!.charge_key], state)
        }
        const newestFirst = yield* sql.unsafe<{ charge_key: string }>("select charge_key from purser.charges order by billing_period desc, planned_at desc, charge_key desc")
        assert.deepStrictEqual(yield* all({}, 13), newestFirst.map((row) => row.charge_key))
      }))
  })

  layer(stores.pipe(Layer.provideMerge(database)), { timeout: 120_000 })("runs and what waits", (it) => {
    it.effect("a run's view adds up to the run book's summary, and its slices to its rows", () =>
      Effect.gen(function*() {
        const book = yield* RunLedger
        const ledger = yield* Ledger
        const stats = yield* RunStats
        const lines = run(Array.from({ length: 12 }, (_, i) => [`a${i}`, 1000 + i]))
        yield* book.begin({ runId: "first", source: "bills.csv" })
        yield* book.stage("first", lines)
        const staged = yield* stats.view("first", 10)
        assert.deepStrictEqual(staged?.groups.map(({ rows, state }) => [state, rows]), [["staged", 12]])
        yield* book.plan("first")
        yield* DatabaseClock.advance("1 minute")
        for (const { request } of lines.slice(0, 6)) {
          const claim = yield* ledger.claim(request, "w1")
          if (claim._tag !== "Claimed") return yield* Effect.die(claim)
        }
        yield* DatabaseClock.advance("1 minute")
        const view = yield* stats.view("first", 10)
        const summary = yield* book.summary("first")
        assert.deepStrictEqual(
          view?.groups.map(({ amountMinor, rows, state }) => [state, rows, amountMinor]).toSorted(),
          summary.map(({ amountMinor, rows, state }) => [state, rows, amountMinor]).toSorted()
        )
        assert.strictEqual(view?.slices.length, 11)
        for (const slice of view?.slices ?? []) assert.strictEqual(slice.waiting + slice.inWork + Object.values(slice.past).reduce((sum, n) => sum + n, 0), 12)
        assert.deepStrictEqual([view?.slices[0]?.waiting, view?.slices[10]?.waiting, view?.slices[10]?.inWork], [12, 6, 6])
        assert.deepStrictEqual((yield* stats.list(null, 10)).map(({ rows, runId, state }) => [runId, state, rows]), [["first", "planned", 12]])
        assert.deepStrictEqual((yield* stats.list(null, 10, ["first", "nobody"])).map(({ runId }) => runId), ["first"])
        assert.deepStrictEqual(yield* stats.list(null, 10, ["nobody"]), [])
        assert.strictEqual(yield* stats.view("nobody", 10), undefined)
      }))

    it.effect("a row with other terms waits from the plan on, until a person drops it, and the charge's trail tells", () =>
      Effect.gen(function*() {
        const book = yield* RunLedger
        const attention = yield* Attention
        const [same, other] = run([["a0", 1000], ["a1", 7777]])
        yield* book.begin({ runId: "second", source: "again.csv" })
        yield* book.stage("second", [same!, other!])
        yield* book.plan("second")
        assert.strictEqual((yield* attention.counts(100)).conflicts, 1)
        const [conflict, ...more] = yield* attention.conflicts(null, 10)
        assert.deepStrictEqual(more, [])
        assert.deepStrictEqual([conflict?.runId, conflict?.line, conflict?.source, conflict?.amountMinor, conflict?.charge.amountMinor], ["second", 2, "again.csv", 7777, 1001])
        const act = { runId: "second", line: 2, actor: "ada", reason: "the file was wrong" }
        assert.isTrue(yield* attention.keepCharge(act))
        assert.isFalse(yield* attention.keepCharge(act))
        assert.strictEqual((yield* attention.counts(100)).conflicts, 0)
        const events = yield* (yield* Ledger).events(other!.chargeKey)
        assert.strictEqual(events.at(-1)?.detail, "the other terms of run second, line 2 were dropped by ada: the file was wrong")
        assert.isNumber((yield* attention.conflictsOf(other!.chargeKey))[0]?.resolvedAtMs)
      }))

    it.effect("requests with other terms are kept once each and counted, while there is room; a charge knows the runs that it is a row of", () =>
      Effect.gen(function*() {
        const attention = yield* Attention
        const [known] = run([["a1", 1001]])
        const { chargeKey, request } = known!
        const note = (amountMinor: number, principal: string | null, most: number) =>
          Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(noteConflicts, [
            texts([chargeKey, chargeKey]), bigints([amountMinor, amountMinor]), texts(["usd", "usd"]), texts([request.stripeCustomerId, request.stripeCustomerId]),
            texts([null, null]), texts([principal, principal]), integer(most)
          ]))
        const kept = Effect.map(attention.conflictsOf(chargeKey), (found) => found.filter(({ runId }) => runId === "").map(({ amountMinor, principal, times }) => [amountMinor, principal, times]))
        yield* note(5, null, 2)
        yield* note(5, null, 2)
        yield* note(5, "shop", 2)
        yield* note(6, "shop", 2)
        assert.deepStrictEqual((yield* kept).toSorted(), [[5, null, 4], [5, "shop", 2]].toSorted())
        const runs = yield* (yield* RunStats).runsOf(chargeKey, 10)
        assert.deepStrictEqual(runs.map(({ line, runId, source }) => [runId, line, source]), [["first", 2, "bills.csv"], ["second", 2, "again.csv"]])
      }))

    it.effect("a quarantine that a person ends is taken up again, by a new lease", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const attention = yield* Attention
        const request = chargeFor("q1", "2026-07")
        const claim = yield* ledger.claim(request, "w1")
        if (claim._tag !== "Claimed") return yield* Effect.die(claim)
        const { lease } = claim.charge
        yield* ledger.quarantine(lease, "amount is 1, not 500")
        assert.deepStrictEqual((yield* attention.quarantined("", 10)).map(({ chargeKey, quarantine }) => [chargeKey, quarantine]), [[lease.chargeKey, "amount is 1, not 500"]])
        assert.isTrue(yield* attention.endQuarantine(lease.chargeKey, { actor: "ada", reason: "mended at Stripe" }))
        assert.isFalse(yield* attention.endQuarantine(lease.chargeKey, { actor: "ada", reason: "again" }))
        assert.strictEqual((yield* ledger.events(lease.chargeKey)).at(-1)?.detail, "quarantine ended by ada: mended at Stripe")
        // Whoever quarantined it holds nothing any more.
        assert.isFalse(yield* ledger.extend(lease))
        const again = yield* ledger.claim(request, "w2")
        assert.strictEqual(again._tag, "Claimed")
        const nobody = ChargeKey.make("0".repeat(32))
        assert.isFalse(yield* attention.endQuarantine(nobody, { actor: "ada", reason: "x" }))
      }))

    it.effect("what was handed back for later is due at once by a person's word, and what somebody has is not", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const attention = yield* Attention
        const request = chargeFor("later", "2026-07")
        const { chargeKey } = request
        const by = { actor: "ada", reason: "the key is mended" }
        const claim = yield* ledger.claim(request, "w1")
        if (claim._tag !== "Claimed") return yield* Effect.die(claim)
        assert.isFalse(yield* attention.hasten(chargeKey, by), "somebody has it")
        assert.isTrue(yield* ledger.handBack(claim.charge.lease, 600_000, "it cannot be read"))
        assert.strictEqual((yield* ledger.claim(request, "w2"))._tag, "InProgress")
        assert.isTrue(yield* attention.hasten(chargeKey, by))
        assert.strictEqual((yield* ledger.events(chargeKey)).at(-1)?.detail, "to be gone on with at once, by ada: the key is mended")
        assert.isFalse(yield* attention.hasten(chargeKey, by), "it is due already")
        const again = yield* ledger.claim(request, "w2")
        if (again._tag !== "Claimed") return yield* Effect.die(again)
        assert.isFalse(yield* attention.hasten(chargeKey, by), "somebody has it again")
        yield* ledger.handBack(again.charge.lease, 600_000, "it cannot be read")
        yield* ledger.quarantine(again.charge.lease, "amount is 1, not 500")
        assert.isFalse(yield* attention.hasten(chargeKey, by), "a person has to look first")
        assert.strictEqual((yield* ledger.claim(request, "w3"))._tag, "Quarantined")
      }))

    it.effect("charges whose lease ran out wait with their last event, once the sweepers had their time", () =>
      Effect.gen(function*() {
        const attention = yield* Attention
        const ledger = yield* Ledger
        // Several lines, in pages of its own and in one that it shares.
        const claim = yield* ledger.claim(chargeFor("handed", "2026-07"), "w1")
        if (claim._tag !== "Claimed") return yield* Effect.die(claim)
        yield* ledger.handBack(claim.charge.lease, 0, "once")
        const taken = yield* ledger.takeExpired("w2", 1000)
        yield* Effect.forEach(taken, ({ lease }) => ledger.handBack(lease, 0, `of ${lease.chargeKey}`), { concurrency: "unbounded" })
        yield* DatabaseClock.advance("5 minutes")
        const found = yield* attention.unresolved(60_000, 100)
        assert.isAbove(found.length, 0)
        const last = yield* Effect.forEach(found, ({ chargeKey }) => Effect.map(ledger.events(chargeKey), (events) => events.at(-1)?.detail))
        assert.deepStrictEqual(found.map(({ lastDetail }) => lastDetail), last)
        assert.strictEqual(found.find(({ chargeKey }) => chargeKey === claim.charge.lease.chargeKey)?.lastDetail, `of ${claim.charge.lease.chargeKey}`)
        assert.isTrue(found.every(({ state, worker }) => state === "claimed" && worker !== null))
        assert.strictEqual((yield* attention.counts(100)).unresolved, found.length)
        assert.strictEqual((yield* attention.counts(2)).unresolved, 2)
        assert.strictEqual((yield* attention.unresolved(3_600_000_000, 100)).length, 0)
      }))

    it.effect("workers are known by their beat, by what they hold and by what they did", () =>
      Effect.gen(function*() {
        const book = yield* WorkerBook
        const ledger = yield* Ledger
        const self = { worker: "w9", host: "h", pid: 1, serves: "req-rep", version: "1" }
        yield* book.beat(self)
        yield* ledger.claim(chargeFor("held", "2026-07"), "w9")
        yield* ledger.claim(chargeFor("swept", "2026-07"), "w9/sweeper")
        yield* ledger.claim(chargeFor("unknown", "2026-07"), "w8")
        const at = (name: string) => Effect.map(book.list, ({ workers }) => workers.find(({ worker }) => worker === name))
        const nine = yield* at("w9")
        assert.deepStrictEqual([nine?.inFlight, nine?.host, nine?.stoppedAtMs], [2, "h", null])
        const eight = yield* at("w8")
        assert.deepStrictEqual([eight?.inFlight, eight?.beatAtMs], [1, null])
        yield* DatabaseClock.advance("1 minute")
        yield* book.beat(self)
        const later = yield* at("w9")
        assert.strictEqual(later?.startedAtMs, nine?.startedAtMs)
        assert.isAbove(later?.beatAtMs ?? 0, nine?.beatAtMs ?? Infinity)
        yield* book.leave("w9")
        assert.isNumber((yield* at("w9"))?.stoppedAtMs)
        yield* DatabaseClock.advance("2 days")
        yield* book.beat({ ...self, worker: "w10" })
        assert.strictEqual(yield* at("w9"), undefined)
      }))

    it.effect("acts are kept in order and never changed", () =>
      Effect.gen(function*() {
        const trail = yield* OperatorTrail
        const sql = yield* SqlClient.SqlClient
        for (const reason of ["one", "two", "three"]) yield* trail.note({ actor: "ada", act: "pause", subject: "charging", reason, detail: null })
        const [last, before] = yield* trail.acts(null, 2)
        assert.deepStrictEqual([last?.reason, before?.reason], ["three", "two"])
        assert.deepStrictEqual((yield* trail.acts(before!.position, 10)).map(({ reason }) => reason), ["one"])
        assert.deepStrictEqual((yield* trail.actsOn("charging", 1)).map(({ reason }) => reason), ["three"])
        assert.isTrue((yield* Effect.result(sql.unsafe("delete from purser.operator_acts")))._tag === "Failure")
      }))

    it.effect("a run's view tells when its rows moved, and draws a quarantine from when it was made", () =>
      Effect.gen(function*() {
        const book = yield* RunLedger
        const ledger = yield* Ledger
        const stats = yield* RunStats
        const lines = run(["m1", "m2", "m3", "m4"].map((customer) => [customer, 1000]))
        yield* book.begin({ runId: "moving", source: "bills.csv" })
        yield* book.stage("moving", lines)
        yield* book.plan("moving")
        const before = (yield* stats.view("moving", 10))!
        assert.deepStrictEqual([before.firstClaimedAtMs, before.lastMovedAtMs], [null, null])
        yield* DatabaseClock.advance("10 minutes")
        const claims = yield* Effect.forEach(lines.slice(0, 3), ({ request }) => ledger.claim(request, "w1"))
        const leases = claims.flatMap((claim) => claim._tag === "Claimed" ? [claim.charge.lease] : [])
        const claimedAtMs = (yield* stats.view("moving", 10))!.atMs
        yield* DatabaseClock.advance("8 minutes")
        yield* ledger.quarantine(leases[0]!, "look")
        yield* ledger.settle({ lease: leases[1]!, attempt: 1, paymentIntentId: null, outcome: new Rejected({ chargeKey: leases[1]!.chargeKey, alreadySettled: false, code: "x", detail: "" }) })
        const view = (yield* stats.view("moving", 20))!
        assert.isBelow(Math.abs(view.firstClaimedAtMs! - claimedAtMs), 10_000)
        assert.isBelow(Math.abs(view.lastMovedAtMs! - view.atMs), 10_000)
        // Claimed in the middle, quarantined at the end.
        assert.deepStrictEqual([15, 20].map((slice) => [view.slices[slice]?.inWork, view.slices[slice]?.past["quarantined"] ?? 0]), [[3, 0], [1, 1]])
        const lately = (sinceMs?: number) => Effect.map(stats.view("moving", 1, sinceMs), (found) => found?.groups.reduce((sum, { settledLastMinute }) => sum + settledLastMinute, 0))
        assert.deepStrictEqual([yield* lately(), yield* lately(view.atMs + 1000)], [1, 0])
      }))
  })
})
