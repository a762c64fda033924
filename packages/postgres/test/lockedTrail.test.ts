/**
 * A statement over several charges that waits at one of them, while another writes a line for one that comes later: that line is told
 * before what the statement writes afterwards. PGlite has one connection, so that nothing of this can happen there.
 */
import { assert, layer } from "@effect/vitest"
import { type ChargeKey, type ChargeRequest, type ClaimedCharge, Declined, EventLog, Ledger, RunLedger, Succeeded } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { hasten } from "../src/internal/attentionSql.ts"
import { eventPageMax, newPage, same, withPage, writeEvents } from "../src/internal/eventPages.ts"
import { text } from "../src/internal/params.ts"
import { PgEventLog } from "../src/PgEventLog.ts"
import { PgLedger } from "../src/PgLedger.ts"
import { PgRunLedger } from "../src/PgRunLedger.ts"
import * as DatabaseClock from "../src/DatabaseClock.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { inTurn, untilWaiting, whileLocked, whileOpen } from "./support/inTurn.ts"

const stores = Layer.mergeAll(PgLedger.layer, PgRunLedger.layer, PgEventLog.layer).pipe(Layer.provideMerge(TestDatabase.layerPostgres))

const idOf = ({ lease }: ClaimedCharge) => `pi_${lease.chargeKey.slice(0, 8)}`
const outcomeOf = (charge: ClaimedCharge) => ({ chargeKey: charge.lease.chargeKey, alreadySettled: false, paymentIntentId: idOf(charge) })
const claim = (request: ChargeRequest) =>
  Effect.flatMap(Ledger, (ledger) => Effect.flatMap(ledger.claim(request, "w1"), (answer) => answer._tag === "Claimed" ? Effect.succeed(answer.charge) : Effect.die(answer._tag)))
const attach = (charge: ClaimedCharge) =>
  Effect.flatMap(Ledger, (ledger) => ledger.attach({ lease: charge.lease, generation: charge.generation, paymentIntentId: idOf(charge), paymentMethod: "pm" }))
const pay = (charge: ClaimedCharge) =>
  Effect.flatMap(Ledger, (ledger) =>
    ledger.settle({ lease: charge.lease, attempt: charge.attempt, paymentIntentId: idOf(charge), outcome: new Succeeded({ ...outcomeOf(charge), chargeId: "ch", amountReceivedMinor: 1000 }) }))
const decline = (charge: ClaimedCharge) =>
  Effect.flatMap(Ledger, (ledger) =>
    ledger.settle({
      lease: charge.lease, attempt: charge.attempt, paymentIntentId: idOf(charge),
      outcome: new Declined({ ...outcomeOf(charge), code: "card_declined", declineCode: null, adviceCode: null, declinedChargeId: null, detail: "no" })
    }))
const handBack = (charge: ClaimedCharge) => Effect.flatMap(Ledger, (ledger) => ledger.handBack(charge.lease, 0, "stopped"))
const each = <A, B, E, R>(all: ReadonlyArray<A>, act: (one: A) => Effect.Effect<B, E, R>) => Effect.forEach(all, act, { concurrency: "unbounded" })

/** Three charges in the order of their keys, in which statements lock them. */
const three = (name: string) => ["a", "b", "c"].map((letter) => chargeFor(`${name}-${letter}`, "2026-05")).toSorted((x, y) => x.chargeKey < y.chargeKey ? -1 : 1)

/** A line of somebody else. */
const noted = (chargeKey: ChargeKey) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql.unsafe(`with ${newPage},
      u as (
        update purser.charges c set event_seq = c.event_seq + 1, event_pages = ${withPage} where c.charge_key = $1
        returning c.charge_key, c.event_seq, c.attempt, c.state
      ),
      e as (${writeEvents("u", { from: "state", to: "state", worker: same("'somebody'"), detail: same("'between'") })})
      select 1 from u`, [chargeKey]))

/** What a charge's trail says, and what followers are told of it. */
const toldOf = Effect.fnUntraced(function*(key: ChargeKey) {
  const log = yield* EventLog
  const before = (yield* log.head).sequence
  for (let n = 0; n < 20; n++) yield* log.advance(1000)
  const told = (yield* log.read({ epoch: null, sequence: before }, 1000)).filter(({ chargeKey }) => chargeKey === key)
  const trail = yield* (yield* Ledger).events(key)
  return { trail: trail.map(({ detail, to }) => detail ?? to), told: told.map(({ detail, to }) => detail ?? to), numbers: told.map(({ chargeSequence }) => chargeSequence) }
})

const locked = "select 1 from purser.charges where charge_key = $1 for update"
/** Begins `act` on all three, which waits at the second one, and notes something at the third meanwhile; answers what is told of the third one. */
const meanwhile = Effect.fnUntraced(function*<A, E, R>(requests: ReadonlyArray<ChargeRequest>, act: Effect.Effect<A, E, R>) {
  const [, second, third] = requests.map(({ chargeKey }) => chargeKey)
  const acting = yield* whileLocked(locked, [second], Effect.gen(function*() {
    const fiber = yield* Effect.forkDetach(act)
    yield* untilWaiting(1)
    yield* noted(third!)
    return fiber
  }))
  yield* Fiber.join(acting)
  return yield* toldOf(third!)
})
const inOrder = ({ numbers, told, trail }: { readonly trail: ReadonlyArray<string>; readonly told: ReadonlyArray<string>; readonly numbers: ReadonlyArray<number> }, last: ReadonlyArray<string>) => {
  assert.deepStrictEqual(trail.slice(-last.length), last)
  assert.deepStrictEqual(told, trail)
  assert.deepStrictEqual(numbers, numbers.map((_, index) => index + 1))
}

layer(stores, { timeout: 60_000, excludeTestServices: true })("the trail at a locked row of PostgreSQL", (it) => {
  it.effect("tells a payment after what was noted while it waited", () => Effect.gen(function*() {
    const requests = three("paid")
    const charges = yield* each(requests, claim)
    yield* each(charges, attach)
    inOrder(yield* meanwhile(requests, each(charges, pay)), ["between", "succeeded"])
  }))

  it.effect("tells a payment that is alone after what was noted by who held its row", () => Effect.gen(function*() {
    const request = chargeFor("paid-alone", "2026-05")
    const charge = yield* claim(request)
    yield* attach(charge)
    const lock = Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(locked, [request.chargeKey]))
    const begun = Effect.tap(Effect.forkDetach(pay(charge)), () => untilWaiting(1))
    yield* Fiber.join(yield* whileOpen(lock, begun, Effect.asVoid(noted(request.chargeKey))))
    inOrder(yield* toldOf(request.chargeKey), ["between", "succeeded"])
  }))

  for (const count of [1, 2]) {
    it.effect(`tells ${count === 1 ? "a payment that is alone" : "payments"} once where the connection dies while it waits, and it is recorded again`, () => Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const charges = yield* each(three(`killed-${count}`).slice(0, count), claim)
      yield* each(charges, attach)
      const dead = yield* whileLocked(locked, [charges[0]!.lease.chargeKey], Effect.gen(function*() {
        const fiber = yield* Effect.forkDetach(each(charges, (charge) => Effect.flip(pay(charge))))
        yield* untilWaiting(1)
        yield* sql`select pg_terminate_backend(l.pid) from pg_locks l join pg_stat_activity a using (pid) where not l.granted and a.datname = current_database()`
        return yield* Fiber.join(fiber)
      }))
      assert.deepStrictEqual(dead.map((error) => error.reason._tag), charges.map(() => "LedgerUnavailable"))
      for (const { lease } of charges) assert.strictEqual((yield* (yield* Ledger).find(lease.chargeKey))?.state, "attached")
      yield* each(charges, pay)
      for (const { lease } of charges) assert.deepStrictEqual((yield* (yield* Ledger).events(lease.chargeKey)).map(({ to }) => to), ["claimed", "attached", "succeeded"])
    }))
  }

  it.effect("tells an object after what was noted while it waited", () => Effect.gen(function*() {
    const requests = three("attached")
    const charges = yield* each(requests, claim)
    inOrder(yield* meanwhile(requests, each(charges, attach)), ["between", idOf(charges[2]!)])
  }))

  it.effect("tells the claim of a planned row after what was noted while it waited", () => Effect.gen(function*() {
    const requests = three("planned")
    const book = yield* RunLedger
    yield* book.begin({ runId: "trail", source: "test" })
    yield* book.stage("trail", requests.map((request, index) => ({ line: index + 1, chargeKey: request.chargeKey, request })))
    yield* book.plan("trail")
    inOrder(yield* meanwhile(requests, each(requests, claim)), ["between", "claimed"])
  }))

  it.effect("tells that charges are handed back after what was noted while they waited", () => Effect.gen(function*() {
    const requests = three("handed")
    const charges = yield* each(requests, claim)
    inOrder(yield* meanwhile(requests, each(charges, handBack)), ["between", "stopped"])
  }))

  it.effect("tells that charges are reopened after what was noted while they waited", () => Effect.gen(function*() {
    const requests = three("reopened")
    const charges = yield* each(requests, claim)
    yield* each(charges, attach)
    yield* each(charges, decline)
    const reopen = Effect.flatMap(Ledger, (ledger) => ledger.reopen({ chargeKeys: requests.map(({ chargeKey }) => chargeKey), from: ["declined"], actor: "ada", reason: "again" }))
    inOrder(yield* meanwhile(requests, reopen), ["between", "reopened by ada: again"])
  }))

  it.effect("does not hasten what its late holder has settled while that waited", () => Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    const request = chargeFor("hastened", "2026-05")
    const charge = yield* claim(request)
    yield* attach(charge)
    yield* Effect.flatMap(Ledger, (ledger) => ledger.handBack(charge.lease, 600_000, "it cannot be read"))
    const [, rows] = yield* inTurn("select 1 from purser.charges where charge_key = $1 for update", [request.chargeKey], pay(charge), sql.unsafe(hasten, [text(request.chargeKey), text("ada"), text("now")]))
    assert.deepStrictEqual(rows, [])
    assert.deepStrictEqual(yield* sql`select state, lease_until from purser.charges where charge_key = ${request.chargeKey}`, [{ state: "succeeded", lease_until: null }])
    assert.strictEqual((yield* (yield* Ledger).events(request.chargeKey)).at(-1)?.to, "succeeded")
  }))

  it.effect("takes more leases that ran out than a page has lines, and all of them", () => Effect.gen(function*() {
    const ledger = yield* Ledger
    const requests = Array.from({ length: eventPageMax + 50 }, (_, index) => chargeFor(`swept-${index}`, "2026-05"))
    yield* each(requests, claim)
    yield* DatabaseClock.advance("1 hour")
    const taken = yield* ledger.takeExpired("sweeper", 2 * eventPageMax)
    const ours = new Set(requests.map(({ chargeKey }) => chargeKey))
    assert.strictEqual(taken.filter(({ lease }) => ours.has(lease.chargeKey)).length, requests.length)
  }))
})
