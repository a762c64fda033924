/**
 * A lease page that is turned, or a charge that is taken over, while somebody changes the lease and has not committed yet: whatever comes
 * of it, the charge is in a page in time, and is given to one. PGlite has one connection, so that nothing of this can happen there.
 */
import { assert, layer } from "@effect/vitest"
import { type ClaimedCharge, Ledger } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as DatabaseClock from "../src/DatabaseClock.ts"
import { turnPages } from "../src/internal/leasePages.ts"
import { makeFirstClaims } from "../src/internal/firstClaimBatches.ts"
import * as Batches from "../src/internal/ledgerBatches.ts"
import { integer } from "../src/internal/params.ts"
import { takeExpired } from "../src/internal/takeExpired.ts"
import { turnAll } from "../src/internal/upkeep.ts"
import { WrittenPages } from "../src/internal/WrittenPages.ts"
import { PgLedger } from "../src/PgLedger.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { untilWaiting, whileOpen } from "./support/inTurn.ts"
import { attach, idOf, lease, outcomes, paged, settle, unpaged } from "./support/leasePlay.ts"

const leaseMs = 600_000
const claim = (customer: string) =>
  Effect.flatMap(Ledger, (ledger) =>
    Effect.flatMap(ledger.claim(chargeFor(customer, "2026-09"), "w"), (answer) =>
      answer._tag === "Claimed" ? Effect.succeed(answer.charge) : Effect.die(new Error(`expected Claimed, got ${answer._tag}`))))
const claimInput = (customer: string) => new Batches.ClaimInput(chargeFor(customer, "2026-09"), "w2", null, undefined)
/** Acts of the ledger on the connection of a transaction that is under way, which the ledger's own never are. */
const acts = Effect.map(SqlClient.SqlClient, (sql) => ({
  begin: (customer: string) => makeFirstClaims(sql, leaseMs, new WrittenPages()).begin([claimInput(customer)]),
  claim: (customer: string) => Batches.claim(sql, leaseMs)([claimInput(customer)]),
  extend: (charge: ClaimedCharge) => Batches.extend(sql, leaseMs)([charge.lease]),
  handBack: (charge: ClaimedCharge, retryAfterMs: number) => Batches.handBack(sql)([{ lease: charge.lease, retryAfterMs, detail: "stopped" }]),
  refuse: (charge: ClaimedCharge) =>
    Batches.settle(sql)([{ lease: charge.lease, attempt: charge.attempt, paymentIntentId: idOf(charge), outcome: outcomes.rejected(charge) }]),
  turn: turnAll(sql)
}))
const runOut = DatabaseClock.advance(lease)
/** The pages that were just written come due. */
const due = DatabaseClock.advance("10 seconds")
const undo = Effect.fail("undo" as const)
/** Whether a sweep takes the charge up. */
const sweeps = ({ lease: { chargeKey } }: ClaimedCharge) =>
  Effect.flatMap(Ledger, (ledger) => Effect.map(ledger.takeExpired("s", 1000), (taken) => taken.some((other) => other.lease.chargeKey === chargeKey)))
const places = ({ lease: { chargeKey } }: ClaimedCharge) => Effect.map(paged, (keys) => keys.filter((key) => key.includes(chargeKey)))
const noWait = <A, E, R>(act: Effect.Effect<A, E, R>) => Effect.raceFirst(act, Effect.as(untilWaiting(1), "waits" as const))

layer(Layer.provideMerge(PgLedger.layerWith({ lease }), TestDatabase.layerPostgres), { timeout: 60_000, excludeTestServices: true })("lease pages at a transaction of PostgreSQL", (it) => {
  it.effect("a turn sees nothing of a first claim that is not committed, and takes none of it away", () => Effect.gen(function*() {
    const { begin, turn } = yield* acts
    yield* due
    yield* whileOpen(begin("first"), turn)
    assert.deepStrictEqual(yield* unpaged, [])
    assert.lengthOf(yield* (yield* Ledger).takeExpired("s", 1000), 0)
    yield* runOut
    assert.lengthOf(yield* (yield* Ledger).takeExpired("s", 1000), 1)
  }))

  it.effect("a turn while somebody claims what ran out leaves it to the claim, and to a sweep where nothing came of that", () => Effect.gen(function*() {
    const { claim: claimOver, turn } = yield* acts
    for (const [name, end, left] of [["kept", Effect.void, false], ["undone", undo, true]] as const) {
      const charge = yield* claim(name)
      yield* runOut
      yield* whileOpen(claimOver(name), turn, end)
      assert.deepStrictEqual(yield* unpaged, [])
      assert.strictEqual(yield* sweeps(charge), left, name)
      assert.deepStrictEqual(yield* unpaged, [])
      yield* runOut
      assert.isTrue(yield* sweeps(charge), name)
    }
  }))

  it.effect("a sweep while a charge is settled leaves it, and finds it again where nothing came of that", () => Effect.gen(function*() {
    const { refuse } = yield* acts
    for (const [name, end, left] of [["settled", Effect.void, false], ["unsettled", undo, true]] as const) {
      const charge = yield* claim(name)
      yield* runOut
      assert.isFalse(yield* whileOpen(refuse(charge), noWait(sweeps(charge)), end), name)
      assert.strictEqual(yield* sweeps(charge), left, name)
      assert.lengthOf(yield* places(charge), left ? 1 : 0)
    }
  }))

  it.effect("a sweep while a late holder extends its lease leaves it to the holder, and takes it up once that has run out", () => Effect.gen(function*() {
    const { extend, turn } = yield* acts
    const charge = yield* claim("extended")
    yield* runOut
    yield* turn
    assert.deepStrictEqual(yield* places(charge), [`(${charge.lease.chargeKey})`])
    assert.isFalse(yield* whileOpen(extend(charge), noWait(sweeps(charge))))
    assert.isFalse(yield* sweeps(charge))
    assert.deepStrictEqual([yield* unpaged, yield* places(charge)], [[], [charge.lease.chargeKey]])
    yield* runOut
    assert.isTrue(yield* sweeps(charge))
  }))

  it.effect("of two turns at once neither waits for the other, and what one of them did not carry through the next one does", () => Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    const turn = sql.unsafe<{ readonly turned: number }>(turnPages, [integer(16)])
    for (const [name, end, left] of [["through", Effect.void, 0], ["back", undo, 1]] as const) {
      const charge = yield* claim(name)
      yield* due
      assert.deepStrictEqual(yield* whileOpen(turn, noWait(turn), end), [{ turned: 0 }])
      assert.deepStrictEqual(yield* unpaged, [])
      assert.deepStrictEqual(yield* turn, [{ turned: left }])
      assert.deepStrictEqual([yield* unpaged, yield* places(charge)], [[], [charge.lease.chargeKey]])
    }
  }))

  it.effect("of two sweeps at once neither waits for the other nor takes what is in its hands, and what one of them gave up the next one takes", () => Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    for (const [name, end, left] of [["taken", Effect.void, false], ["given-up", undo, true]] as const) {
      const charge = yield* claim(name)
      yield* runOut
      yield* turnAll(sql)
      assert.isFalse(yield* whileOpen(takeExpired(sql, "other", 1000, leaseMs), noWait(sweeps(charge)), end), name)
      assert.strictEqual(yield* sweeps(charge), left, name)
      assert.deepStrictEqual([yield* unpaged, yield* places(charge)], [[], [charge.lease.chargeKey]])
    }
  }))

  it.effect("what is done to a charge while its page is turned has a page of its own", () => Effect.gen(function*() {
    const ledger = yield* Ledger
    const { turn } = yield* acts
    const handed = yield* claim("handed")
    const polled = yield* claim("polled")
    const lasting = yield* claim("lasting")
    const refused = yield* claim("refused")
    yield* attach(ledger, refused)
    yield* settle(ledger, refused, outcomes.declined)
    yield* due
    yield* whileOpen(turn, Effect.gen(function*() {
      yield* ledger.handBack(handed.lease, 0, "stopped")
      yield* settle(ledger, polled, outcomes.processing)
      assert.isTrue(yield* ledger.extend(lasting.lease))
      yield* ledger.reopen({ chargeKeys: [refused.lease.chargeKey], from: ["declined"], actor: "ada", reason: "a new card" })
    }))
    assert.deepStrictEqual(yield* unpaged, [])
    const keys = new Set<string>((yield* ledger.takeExpired("s", 1000)).map((taken) => taken.lease.chargeKey))
    assert.deepStrictEqual([handed, polled, lasting, refused].map((charge) => keys.has(charge.lease.chargeKey)), [true, true, false, true])
  }))

  it.effect("a page is turned by what was committed: a hand-back that is under way has its own", () => Effect.gen(function*() {
    const { handBack, turn } = yield* acts
    for (const [name, end, left] of [["handed-back", Effect.void, true], ["kept-on", undo, false]] as const) {
      const charge = yield* claim(name)
      yield* due
      yield* whileOpen(handBack(charge, 0), turn, end)
      assert.deepStrictEqual(yield* unpaged, [])
      assert.strictEqual(yield* sweeps(charge), left, name)
    }
  }))
})
