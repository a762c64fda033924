/**
 * Two statements of the ledger at one row, where the second has looked at it before the first had written: each move asks again
 * whether the row is still what it saw. PGlite has one connection, so that nothing of this can happen there.
 */
import { assert, layer } from "@effect/vitest"
import { type ChargeKey, type ChargeRequest, type ClaimedCharge, Declined, Ledger, Processing, RunLedger, SpendCap, Succeeded } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { Effect, Exit, Fiber, Latch, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as DatabaseClock from "../src/DatabaseClock.ts"
import * as Writes from "../src/internal/ledgerWrites.ts"
import { bigints, doubles, integers, nullableDoubles, texts } from "../src/internal/params.ts"
import { PgLedger } from "../src/PgLedger.ts"
import { PgRunLedger } from "../src/PgRunLedger.ts"
import { PgSpendCap } from "../src/PgSpendCap.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { after, inTurn, untilWaiting, whileLocked } from "./support/inTurn.ts"

const stores = Layer.provideMerge(Layer.mergeAll(PgLedger.layer, PgSpendCap.layer), TestDatabase.layerPostgres)
/** Of another process: calls of one process may share a statement. */
const theirs = Effect.map(Layer.build(Layer.fresh(Layer.mergeAll(PgLedger.layer, PgSpendCap.layer))), (built) => ({
  ledger: Ledger.pipe(Effect.provide(built)), cap: SpendCap.pipe(Effect.provide(built))
}))
const both = Effect.gen(function*() {
  const built = yield* theirs
  return { ours: yield* Ledger, theirs: yield* built.ledger }
})

const claim = (request: ChargeRequest, worker = "w1") =>
  Effect.flatMap(Ledger, (ledger) => Effect.flatMap(ledger.claim(request, worker), (answer) =>
    answer._tag === "Claimed" ? Effect.succeed(answer.charge) : Effect.die(new Error(`expected Claimed, got ${answer._tag}`))))
const attached = Effect.fnUntraced(function*(request: ChargeRequest, paymentMethod: string | null = "pm_card_visa") {
  const charge = yield* claim(request)
  const { generation, lease } = charge
  yield* (yield* Ledger).attach({ lease, generation, paymentIntentId: idOf(charge), paymentMethod })
  return charge
})
const idOf = ({ lease }: ClaimedCharge) => `pi_${lease.chargeKey.slice(0, 8)}`
const common = ({ lease }: ClaimedCharge) => ({ chargeKey: lease.chargeKey, alreadySettled: false })
const paid = (charge: ClaimedCharge) => ({
  lease: charge.lease, attempt: charge.attempt, paymentIntentId: idOf(charge),
  outcome: new Succeeded({ ...common(charge), paymentIntentId: idOf(charge), chargeId: "ch_1", amountReceivedMinor: 1000 })
})
const refused = (charge: ClaimedCharge) => ({
  lease: charge.lease, attempt: charge.attempt, paymentIntentId: idOf(charge),
  outcome: new Declined({ ...common(charge), paymentIntentId: idOf(charge), code: "card_declined", declineCode: null, adviceCode: null, declinedChargeId: null, detail: "no" })
})
const find = (chargeKey: ChargeKey) => Effect.flatMap(Ledger, (ledger) => Effect.map(ledger.find(chargeKey), (row) => row!))
const atRow = <A, E, R, B, F, S>({ lease }: ClaimedCharge, first: Effect.Effect<A, E, R>, second: Effect.Effect<B, F, S>) =>
  inTurn("select 1 from purser.charges where charge_key = $1 for update", [lease.chargeKey], first, second)
const runOut = DatabaseClock.advance("1 minute")

layer(stores, { timeout: 60_000, excludeTestServices: true })("at a locked row of PostgreSQL", (it) => {
  it.effect("a claim takes no charge that was settled meanwhile", () => Effect.gen(function*() {
    const { ours, theirs } = yield* both
    const charge = yield* attached(chargeFor("claim-settled", "2026-11"))
    yield* runOut
    const [, answer] = yield* atRow(charge, theirs.settle(paid(charge)), ours.claim(charge.request, "w2"))
    assert.strictEqual(answer._tag, "AlreadySettled")
  }))

  it.effect("a claim takes no charge whose late holder has extended its lease", () => Effect.gen(function*() {
    const { ours, theirs } = yield* both
    const charge = yield* attached(chargeFor("claim-extended", "2026-11"))
    yield* runOut
    const [extended, answer] = yield* atRow(charge, theirs.extend(charge.lease), ours.claim(charge.request, "w2"))
    assert.deepStrictEqual([extended, answer._tag], [true, "InProgress"])
  }))

  it.effect("two claims of a charge that ran out give it to one", () => Effect.gen(function*() {
    const { ours, theirs } = yield* both
    const charge = yield* attached(chargeFor("claim-twice", "2026-11"))
    yield* runOut
    const answers = yield* atRow(charge, theirs.claim(charge.request, "w2"), ours.claim(charge.request, "w3"))
    assert.deepStrictEqual(answers.map(({ _tag }) => _tag), ["Claimed", "InProgress"])
  }))

  it.effect("an attach does not take a paid charge back to work", () => Effect.gen(function*() {
    const { ours, theirs } = yield* both
    const charge = yield* attached(chargeFor("attach-paid", "2026-11", { paymentMethod: null }), null)
    const frozen = { lease: charge.lease, generation: 1, paymentIntentId: idOf(charge), paymentMethod: "pm_late" }
    yield* atRow(charge, theirs.settle(paid(charge)), ours.attach(frozen))
    assert.strictEqual((yield* find(charge.lease.chargeKey)).state, "succeeded")
  }))

  it.effect("a decline does not overwrite a payment", () => Effect.gen(function*() {
    const { ours, theirs } = yield* both
    const charge = yield* attached(chargeFor("decline-paid", "2026-11"))
    const [, answer] = yield* atRow(charge, theirs.settle(paid(charge)), ours.settle(refused(charge)))
    assert.deepStrictEqual([answer._tag, (yield* find(charge.lease.chargeKey)).state], ["Recorded", "succeeded"])
  }))

  it.effect("a payment that meets a decline is a late success of it", () => Effect.gen(function*() {
    const { ours, theirs } = yield* both
    const charge = yield* attached(chargeFor("paid-declined", "2026-11"))
    const [, answer] = yield* atRow(charge, theirs.settle(refused(charge)), ours.settle(paid(charge)))
    assert.strictEqual(answer._tag, "Settled")
    assert.deepStrictEqual((yield* ours.events(charge.lease.chargeKey)).slice(-2).map(({ detail, from, to }) => [from, to, detail]), [
      ["attached", "declined", "no"], ["declined", "succeeded", "late success after declined"]
    ])
  }))

  it.effect("a charge that waits is not taken back to work from where it came to meanwhile", () => Effect.gen(function*() {
    const { ours, theirs } = yield* both
    for (const [name, first, state] of [
      ["paid", (charge: ClaimedCharge) => Effect.asVoid(theirs.settle(paid(charge))), "succeeded"],
      ["aside", (charge: ClaimedCharge) => theirs.quarantine(charge.lease, "another amount"), "processing"]
    ] as const) {
      const charge = yield* attached(chargeFor(`waiting-${name}`, "2026-11"))
      yield* ours.settle({ ...paid(charge), outcome: new Processing({ ...common(charge), paymentIntentId: idOf(charge) }) })
      const [, taken] = yield* atRow(charge, first(charge), ours.takeWaiting(charge.lease.chargeKey, "w2"))
      assert.deepStrictEqual([taken, (yield* find(charge.lease.chargeKey)).state], [undefined, state])
    }
  }))

  it.effect("of two who put a charge aside the first one's words stand", () => Effect.gen(function*() {
    const { ours, theirs } = yield* both
    const charge = yield* attached(chargeFor("aside-twice", "2026-11"))
    yield* atRow(charge, theirs.quarantine(charge.lease, "first"), ours.quarantine(charge.lease, "second"))
    assert.strictEqual((yield* find(charge.lease.chargeKey)).quarantine, "first")
    assert.deepStrictEqual((yield* ours.events(charge.lease.chargeKey)).flatMap(({ detail }) => detail?.startsWith("quarantined") ? [detail] : []), ["quarantined: first"])
  }))

  it.effect("room that was given back is not noted for an attempt that was declined since", () => Effect.gen(function*() {
    const { ours } = yield* both
    const sql = yield* SqlClient.SqlClient
    const charge = yield* attached(chargeFor("released", "2026-11"))
    yield* ours.settle(refused(charge))
    const { chargeKey } = charge.lease
    // Asked for again by a person and declined again, all of it while a release of the first attempt is on its way.
    yield* after(sql.unsafe("update purser.charges set attempt = 2, release_due = true where charge_key = $1", [chargeKey]), ours.markReleased(chargeKey, 1))
    assert.deepInclude(yield* ours.releaseDue(1000), { chargeKey, attempt: 2 })
  }))

  it.effect("what was taken over is neither extended nor handed back by who held it", () => Effect.gen(function*() {
    const { ours, theirs } = yield* both
    for (const [name, late] of [
      ["extend", (charge: ClaimedCharge) => ours.extend(charge.lease)],
      ["hand-back", (charge: ClaimedCharge) => Effect.as(ours.handBack(charge.lease, 0, "late"), false)]
    ] as const) {
      const charge = yield* attached(chargeFor(`taken-${name}`, "2026-11"))
      yield* runOut
      const [taken, answer] = yield* atRow(charge, theirs.claim(charge.request, "w2"), late(charge))
      assert.deepStrictEqual([taken._tag, answer], ["Claimed", false])
      assert.strictEqual((yield* ours.claim(charge.request, "w3"))._tag, "InProgress")
      assert.strictEqual((yield* ours.events(charge.lease.chargeKey)).at(-1)!.detail, "taken over")
    }
    const settled = yield* attached(chargeFor("settled-extend", "2026-11"))
    const [, extended] = yield* atRow(settled, theirs.settle(paid(settled)), ours.extend(settled.lease))
    assert.isFalse(extended)
  }))

  it.effect("a canceled object is not replaced in a charge that came to wait meanwhile", () => Effect.gen(function*() {
    const { ours, theirs } = yield* both
    const charge = yield* attached(chargeFor("renew-waiting", "2026-11"))
    const outcome = new Processing({ ...common(charge), paymentIntentId: idOf(charge) })
    const [, renewed] = yield* atRow(charge, theirs.settle({ ...paid(charge), outcome }), ours.renew({ lease: charge.lease, generation: 1, paymentIntentId: idOf(charge) }))
    assert.deepStrictEqual([renewed, (yield* find(charge.lease.chargeKey)).state], [false, "processing"])
  }))

  it.effect("of two people who reopen a charge one does", () => Effect.gen(function*() {
    const { ours, theirs } = yield* both
    const charge = yield* attached(chargeFor("reopened", "2026-11"))
    yield* ours.settle(refused(charge))
    const input = { chargeKeys: [charge.lease.chargeKey], from: ["declined"] as const, reason: "again" }
    const moved = yield* atRow(charge, theirs.reopen({ ...input, actor: "ada" }), ours.reopen({ ...input, actor: "ben" }))
    assert.deepStrictEqual([...moved, (yield* find(charge.lease.chargeKey)).attempt], [1, 0, 2])
  }))

  it.effect("no paid charge is reopened, whatever is asked for", () => Effect.gen(function*() {
    const ledger = yield* Ledger
    const charge = yield* attached(chargeFor("reopened-paid", "2026-11"))
    yield* ledger.settle(paid(charge))
    assert.strictEqual(yield* ledger.reopen({ chargeKeys: [charge.lease.chargeKey], from: ["succeeded"] as never, actor: "ada", reason: "again" }), 0)
  }))

  it.effect("of two payments found for one row one is taken into it", () => Effect.gen(function*() {
    const { ours, theirs } = yield* both
    const charge = yield* claim(chargeFor("adopted", "2026-11"))
    yield* runOut
    const input = { request: charge.request, paymentMethod: "pm_card_visa", worker: "r" }
    const [first, second] = yield* atRow(charge, theirs.adopt({ ...input, paymentIntentId: "pi_first" }), ours.adopt({ ...input, paymentIntentId: "pi_second" }))
    assert.deepStrictEqual([first?.paymentIntentId, second, (yield* find(charge.lease.chargeKey)).paymentIntentId], ["pi_first", undefined, "pi_first"])
  }))

  it.effect("of two payments found without a row one makes it", () => Effect.gen(function*() {
    const { ours, theirs } = yield* both
    const request = chargeFor("adopted-new", "2026-11")
    const input = { request, paymentMethod: "pm_card_visa", worker: "r" }
    const second = yield* after(theirs.adopt({ ...input, paymentIntentId: "pi_first" }), ours.adopt({ ...input, paymentIntentId: "pi_second" }))
    assert.deepStrictEqual([second, (yield* find(request.chargeKey)).paymentIntentId], [undefined, "pi_first"])
  }))

  it.effect("a sweep does not wait for a row in other hands, and takes the others; the next one takes it", () => Effect.gen(function*() {
    const { ours, theirs } = yield* both
    const charges = yield* Effect.forEach(["a", "b", "c"], (name) => attached(chargeFor(`swept-${name}`, "2026-12")))
    yield* runOut
    const keys = new Set<ChargeKey>(charges.map(({ lease }) => lease.chargeKey))
    const sweep = (ledger: typeof ours) => Effect.map(ledger.takeExpired("s", 1000), (taken) =>
      taken.filter(({ lease }) => keys.has(lease.chargeKey)).map(({ lease }) => lease.chargeKey).toSorted())
    const held = charges[1]!.lease.chargeKey
    const answer = yield* whileLocked("select 1 from purser.charges where charge_key = $1 for update", [held],
      Effect.raceFirst(sweep(ours), Effect.as(untilWaiting(1), "waits")))
    assert.deepStrictEqual(answer, [...keys].filter((key) => key !== held).toSorted())
    assert.deepStrictEqual(yield* sweep(theirs), [held])
  }))

  it.effect("two processes that wait for one cap take together what fits", () => Effect.gen(function*() {
    const cap = yield* SpendCap
    const other = yield* (yield* theirs).cap
    const requests = ["a", "b"].map((name) => chargeFor(`cap-${name}`, "2027-01"))
    const [a, b] = requests.map((request) => ({ ...request, chargeKey: request.chargeKey, attempt: 1, amountMinor: 1000 }))
    yield* cap.open({ ...requests[0]!, expectedMinor: 1999n, headroomPercent: 100 })
    const atCap = <A, E, R, B, F, S>(first: Effect.Effect<A, E, R>, second: Effect.Effect<B, F, S>) =>
      inTurn("select 1 from purser.caps where billing_period = $1 for update", ["2027-01"], Effect.exit(first), Effect.exit(second))
    const held = Effect.map(cap.report(requests[0]!.billingPeriod), ([report]) => [report!.reservedMinor, report!.reservations])
    assert.deepStrictEqual((yield* atCap(other.reserve(a!), cap.reserve(b!))).map(Exit.isSuccess), [true, false])
    assert.deepStrictEqual(yield* held, [1000n, 1])
    assert.deepStrictEqual((yield* atCap(other.release(a!.chargeKey, 1), cap.release(a!.chargeKey, 1))).map(Exit.isSuccess), [true, true])
    assert.deepStrictEqual(yield* held, [0n, 0])
    // A claim that takes its room at once had seen the room that the other one has taken meanwhile.
    const [, claimed] = yield* atCap(other.reserve(a!), (yield* Ledger).claim(requests[1]!, "w1", { room: true }))
    assert.isTrue(Exit.isSuccess(claimed) && claimed.value._tag === "Claimed" && claimed.value.hasRoom === false)
    assert.deepStrictEqual(yield* held, [1000n, 1])
  }))

  it.effect("a late payment and who gives its room back leave it with its room, whoever is first at the cap", () => Effect.gen(function*() {
    const cap = yield* SpendCap
    const { ours } = yield* both
    const other = yield* (yield* theirs).cap
    const late = Effect.fnUntraced(function*(name: string, period: string) {
      const charge = yield* attached(chargeFor(name, period))
      yield* cap.open({ ...charge.request, expectedMinor: 100_000n, headroomPercent: 100 })
      yield* cap.reserve({ ...charge.request, chargeKey: charge.lease.chargeKey, attempt: 1, amountMinor: 1000 })
      yield* ours.settle(refused(charge))
      return charge
    })
    const atCap = <A, E, R, B, F, S>({ request }: ClaimedCharge, first: Effect.Effect<A, E, R>, second: Effect.Effect<B, F, S>) =>
      inTurn("select 1 from purser.caps where billing_period = $1 for update", [request.billingPeriod], first, second)
    const held = ({ request }: ClaimedCharge) => Effect.map(cap.report(request.billingPeriod), ([report]) => [report!.reservedMinor, report!.reservations])
    const given = yield* late("given-first", "2027-03")
    yield* atCap(given, other.release(given.lease.chargeKey, 1), ours.settle(paid(given)))
    const taken = yield* late("paid-first", "2027-04")
    yield* atCap(taken, ours.settle(paid(taken)), other.release(taken.lease.chargeKey, 1))
    // Who gives it back has found it unpaid, and not committed.
    const sql = yield* SqlClient.SqlClient
    const going = yield* late("going", "2027-06")
    yield* after(sql.unsafe("select purser.release(array[$1], array[1])", [going.lease.chargeKey]), ours.settle(paid(going)))
    assert.deepStrictEqual([yield* held(given), yield* held(taken), yield* held(going)], [[1000n, 1], [1000n, 1], [1000n, 1]])
  }))

  it.effect("a payment that is recorded by its holder while its room is being given back has room", () => Effect.gen(function*() {
    const cap = yield* SpendCap
    const { ours } = yield* both
    const charge = yield* attached(chargeFor("held-going", "2027-07"))
    yield* cap.open({ ...charge.request, expectedMinor: 100_000n, headroomPercent: 100 })
    yield* cap.reserve({ ...charge.request, chargeKey: charge.lease.chargeKey, attempt: 1, amountMinor: 1000 })
    yield* ours.settle({ ...refused(charge), outcome: new Processing({ ...common(charge), paymentIntentId: idOf(charge) }), pollAfterMs: 60_000 })
    const sql = yield* SqlClient.SqlClient
    yield* after(sql.unsafe("select purser.release(array[$1], array[1])", [charge.lease.chargeKey]), ours.settle(paid(charge)))
    const [report] = yield* cap.report(charge.request.billingPeriod)
    assert.deepStrictEqual([report!.reservedMinor, report!.reservations], [1000n, 1])
  }))

  it.effect("room that is taken for an ended charge and its late payment do not wait for each other", () => Effect.gen(function*() {
    const cap = yield* SpendCap
    const { ours } = yield* both
    const sql = yield* SqlClient.SqlClient
    const charge = yield* attached(chargeFor("ended-taken", "2027-08"))
    const { billingPeriod, currency, namespace } = charge.request
    yield* cap.open({ ...charge.request, expectedMinor: 100_000n, headroomPercent: 100 })
    yield* ours.settle(refused(charge))
    yield* ours.markReleased(charge.lease.chargeKey, 1)
    // As they are, and not by ledger and cap, which would send again what the database broke off.
    const taken = sql.unsafe("select verdict from purser.reserve(array[$1], array[$2], array[$3], array[$4], array[1], array[1000]::bigint[], array[false])",
      [charge.lease.chargeKey, namespace, billingPeriod, currency])
    const nothing = texts([null])
    const late = sql.unsafe(Writes.settle, [
      texts([charge.lease.chargeKey]), texts(["w1"]), bigints([charge.lease.epoch]), integers([1]), texts([idOf(charge)]), texts(["succeeded"]), texts([idOf(charge)]), nothing,
      bigints([1000]), nothing, nothing, nothing, doubles([0]), nothing, nothing, nullableDoubles([null])
    ])
    const ends = yield* inTurn("select 1 from purser.caps where billing_period = $1 for update", [billingPeriod], Effect.exit(taken), Effect.exit(late))
    assert.deepStrictEqual(ends.map(Exit.isSuccess), [true, true])
    const [report] = yield* cap.report(billingPeriod)
    assert.deepStrictEqual([report!.reservedMinor, report!.reservations, (yield* find(charge.lease.chargeKey)).state], [1000n, 1, "succeeded"])
  }))

  it.effect("room that is being taken for an ended charge is not lost sight of by who had given its room back", () => Effect.gen(function*() {
    const cap = yield* SpendCap
    const { ours } = yield* both
    const sql = yield* SqlClient.SqlClient
    const charge = yield* attached(chargeFor("taken-unseen", "2027-09"))
    const { billingPeriod, currency, namespace } = charge.request
    yield* cap.open({ ...charge.request, expectedMinor: 100_000n, headroomPercent: 100 })
    yield* ours.settle(refused(charge))
    const taken = sql.unsafe("select verdict from purser.reserve(array[$1], array[$2], array[$3], array[$4], array[1], array[1000]::bigint[], array[false])",
      [charge.lease.chargeKey, namespace, billingPeriod, currency])
    yield* after(taken, ours.markReleased(charge.lease.chargeKey, 1))
    assert.isTrue((yield* ours.releaseDue(1000)).some(({ chargeKey }) => chargeKey === charge.lease.chargeKey))
  }))

  it.effect("a cap that is opened while room is waited for under another one lets no more through than it says", () => Effect.gen(function*() {
    const cap = yield* SpendCap
    const other = yield* (yield* theirs).cap
    const sql = yield* SqlClient.SqlClient
    const [one, ...late] = [chargeFor("one", "2027-10"), ...["a", "b", "c"].map((name) => chargeFor(name, "2027-11"))] as const
    const wish = (request: ChargeRequest) => ({ ...request, chargeKey: request.chargeKey, attempt: 1, amountMinor: 1000 })
    yield* cap.open({ ...one, expectedMinor: 100_000n, headroomPercent: 100 })
    const held = Effect.fnUntraced(function*(act: Effect.Effect<unknown, unknown>) {
      const [begun, end] = [yield* Latch.make(), yield* Latch.make()]
      const fiber = yield* Effect.forkDetach(sql.withTransaction(Effect.andThen(act, Effect.andThen(begun.open, end.await))))
      yield* begun.await
      return Effect.andThen(end.open, Fiber.join(fiber))
    })
    const letGo = yield* held(sql`select 1 from purser.caps where billing_period = ${one.billingPeriod} for update`)
    const waiting = yield* Effect.forkDetach(Effect.exit(Effect.all([one, late[0]!, late[1]!].map((request) => cap.reserve(wish(request))), { concurrency: "unbounded", mode: "result" })))
    yield* untilWaiting(1)
    yield* other.open({ ...late[0]!, expectedMinor: 2000n, headroomPercent: 100 })
    const { billingPeriod, chargeKey, currency, namespace } = late[2]!
    const commit = yield* held(sql.unsafe("select verdict from purser.reserve(array[$1], array[$2], array[$3], array[$4], array[1], array[1000]::bigint[], array[false])",
      [chargeKey, namespace, billingPeriod, currency]))
    yield* letGo
    yield* untilWaiting(1)
    yield* commit
    yield* Fiber.join(waiting)
    const [report] = yield* cap.report(billingPeriod)
    const [found] = yield* sql<{ readonly sum: bigint }>`select sum(amount_minor)::bigint as sum from purser.held_room where billing_period = ${billingPeriod}`
    assert.deepStrictEqual([report!.reservedMinor, report!.reservations, BigInt(found!.sum)], [2000n, 2, 2000n])
  }))

  it.effect("of two who record one late payment one takes its room", () => Effect.gen(function*() {
    const cap = yield* SpendCap
    const { ours, theirs } = yield* both
    const charge = yield* attached(chargeFor("paid-late-twice", "2027-05"))
    yield* cap.open({ ...charge.request, expectedMinor: 100_000n, headroomPercent: 100 })
    yield* ours.settle(refused(charge))
    yield* atRow(charge, theirs.settle(paid(charge)), ours.settle(paid(charge)))
    const [report] = yield* cap.report(charge.request.billingPeriod)
    assert.deepStrictEqual([report!.reservedMinor, report!.reservations], [1000n, 1])
  }))
})

for (const planned of [false, true]) {
  layer(Layer.provideMerge(PgRunLedger.layer, stores), { timeout: 60_000, excludeTestServices: true })(`at a locked cap of PostgreSQL, ${planned ? "planned" : "new"}`, (it) => {
    const wish = (request: ChargeRequest) => ({ ...request, chargeKey: request.chargeKey, attempt: 1, amountMinor: request.amountMinor })
    const scene = Effect.fnUntraced(function*(name: string) {
      const [cap, runs] = [yield* SpendCap, yield* RunLedger]
      const request = chargeFor(name, "2026-11", { namespace: name })
      yield* cap.open({ ...request, expectedMinor: 1_000_000n, headroomPercent: 100 })
      yield* runs.begin({ runId: name, source: "test" })
      yield* runs.stage(name, planned ? [{ line: 1, chargeKey: request.chargeKey, request }] : [])
      yield* runs.plan(name)
      return request
    })
    const atCap = <A, E, R, B, F, S>({ namespace }: ChargeRequest, first: Effect.Effect<A, E, R>, second: Effect.Effect<B, F, S>) =>
      inTurn("select 1 from purser.caps where namespace = $1 for update", [namespace], first, second)
    // By a process that has had no trouble yet.
    const claimed = (request: ChargeRequest) =>
      Effect.flatMap(Ledger, (ledger) => Effect.map(ledger.claim(request, "w1", { room: true }), (answer) => answer._tag === "Claimed" && answer.hasRoom)).pipe(
        Effect.provide(Layer.fresh(PgLedger.layer)))
    const reserved = Effect.fnUntraced(function*({ billingPeriod, namespace }: ChargeRequest) {
      return (yield* (yield* SpendCap).report(billingPeriod)).find((one) => one.namespace === namespace)!.reservedMinor
    })

    it.effect("a first claim takes no room where somebody takes it for its charge meanwhile", () => Effect.gen(function*() {
      const request = yield* scene("reserve-first")
      assert.deepStrictEqual(yield* atCap(request, (yield* SpendCap).reserve(wish(request)), claimed(request)), [undefined, false])
      assert.strictEqual(yield* reserved(request), 1000n)
    }))

    it.effect("and nobody takes it for a charge whose first claim takes it meanwhile", () => Effect.gen(function*() {
      const request = yield* scene("claim-first")
      assert.deepStrictEqual(yield* atCap(request, claimed(request), (yield* SpendCap).reserve(wish(request))), [true, undefined])
      assert.strictEqual(yield* reserved(request), 1000n)
    }))

    it.effect("a first claim whose connection dies there has written nothing, and is made again with its room", () => Effect.gen(function*() {
      const [request, sql] = [yield* scene("killed"), yield* SqlClient.SqlClient]
      const dead = yield* whileLocked("select 1 from purser.caps where namespace = $1 for update", [request.namespace], Effect.gen(function*() {
        const fiber = yield* Effect.forkDetach(Effect.flip(claimed(request)))
        yield* untilWaiting(1)
        yield* sql`select pg_terminate_backend(l.pid) from pg_locks l join pg_stat_activity a using (pid) where not l.granted and a.datname = current_database()`
        return yield* Fiber.join(fiber)
      }))
      const row = yield* Effect.flatMap(Ledger, (ledger) => ledger.find(request.chargeKey))
      assert.deepStrictEqual([dead._tag === "LedgerError" && dead.reason._tag, row?.state, yield* reserved(request)], ["LedgerUnavailable", planned ? "planned" : undefined, 0n])
      assert.deepStrictEqual([yield* claimed(request), yield* reserved(request)], [true, 1000n])
    }))

    it.effect("it is closed by two, and opened again by two", () => Effect.gen(function*() {
      const request = yield* scene("closed-twice")
      const [ours, others] = [yield* SpendCap, yield* (yield* theirs).cap]
      assert.deepStrictEqual(yield* atCap(request, ours.close(request), others.close(request)), [undefined, undefined])
      const act = { ...request, actor: "ann", reason: "test" }
      const opened = yield* atCap(request, ours.reopen(act), others.reopen(act))
      assert.deepStrictEqual(opened.map(({ closed }) => closed), [false, false])
    }))
  })
}
