/**
 * Two acts on one row of the books beside the ledger, where the second has looked before the first had written: refunds, runs, dunning,
 * webhook events. What the ledger does at such a row is in `lockedRows.test.ts`.
 */
import { assert, layer } from "@effect/vitest"
import {
  type AmountMinor, type ChargeKey, type ClaimedRefund, Declined, DunningBook, Ledger, Refunded, RefundLedger, RefundRefused, RefundRequest, RunLedger, RunRegistry, Succeeded, WebhookInbox,
  WorkerBook
} from "@purser/core"
import { chargeFor, type ChargeForOptions } from "@purser/testkit/chargeFor"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as DatabaseClock from "../src/DatabaseClock.ts"
import { planPart } from "../src/internal/runSql.ts"
import { PgDunningBook } from "../src/PgDunningBook.ts"
import { PgLedger } from "../src/PgLedger.ts"
import { PgRefundLedger } from "../src/PgRefundLedger.ts"
import { PgRunLedger } from "../src/PgRunLedger.ts"
import { PgRunRegistry } from "../src/PgRunRegistry.ts"
import { PgWebhookInbox } from "../src/PgWebhookInbox.ts"
import { PgWorkerBook } from "../src/PgWorkerBook.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { inTurn, untilWaiting, whileLocked, whileOpen } from "./support/inTurn.ts"

const books = Layer.mergeAll(
  PgLedger.layer, PgRefundLedger.layer, PgRunLedger.layer, PgRunRegistry.layer, PgDunningBook.layer, PgWebhookInbox.layer, PgWorkerBook.layer
).pipe(Layer.provideMerge(TestDatabase.layerPostgres))
/** Of another process: calls of one process may share a statement. */
const theirLedger = Effect.flatMap(Layer.build(Layer.fresh(PgLedger.layer)), (built) => Ledger.pipe(Effect.provide(built)))

const at = (table: "charges" | "refunds" | "runs" | "run_registry" | "dunning_cases" | "webhook_events", column: string, value: string) => {
  const lock = `select 1 from purser.${table} where ${column} = $1 for update`
  return {
    inTurn: <A, E, R, B, F, S>(first: Effect.Effect<A, E, R>, second: Effect.Effect<B, F, S>) => inTurn(lock, [value], first, second),
    /** What it answers while somebody else holds the row; "waits" if it waits for that. */
    without: <A, E, R>(act: Effect.Effect<A, E, R>) => whileLocked(lock, [value], Effect.raceFirst(act, Effect.as(untilWaiting(1), "waits" as const)))
  }
}
const atCharge = (chargeKey: ChargeKey) => at("charges", "charge_key", chargeKey)
const tags = (answers: ReadonlyArray<{ readonly _tag: string }>) => answers.map(({ _tag }) => _tag)
const act = { actor: "ada", reason: "test" }
const runOut = DatabaseClock.advance("1 minute")

/** A charge that was asked for, and paid or declined. */
const asked = Effect.fnUntraced(function*(name: string, end: "paid" | "declined", options: ChargeForOptions = {}) {
  const ledger = yield* Ledger
  const request = chargeFor(name, "2026-11", options)
  const { chargeKey } = request
  const answer = yield* ledger.claim(request, "w1")
  if (answer._tag !== "Claimed") return yield* Effect.die(new Error(`expected Claimed, got ${answer._tag}`))
  const { attempt, generation, lease } = answer.charge
  const paymentIntentId = `pi_${name}`
  yield* ledger.attach({ lease, generation, paymentIntentId, paymentMethod: "pm_card_visa" })
  const common = { chargeKey, alreadySettled: false, paymentIntentId }
  const outcome = end === "paid"
    ? new Succeeded({ ...common, chargeId: `ch_${name}`, amountReceivedMinor: 1000 })
    : new Declined({ ...common, code: "card_declined", declineCode: null, adviceCode: null, declinedChargeId: null, detail: "no" })
  yield* ledger.settle({ lease, attempt, paymentIntentId, outcome })
  return chargeKey
})

const wish = (chargeKey: ChargeKey, refundId: string, amountMinor: number) =>
  new RefundRequest({ chargeKey, refundId, amountMinor: amountMinor as AmountMinor, reason: null, actor: "ada", note: "test" })
const refundOf = (chargeKey: ChargeKey, refundId: string, amountMinor: number) =>
  Effect.flatMap(RefundLedger, (book) => Effect.flatMap(book.claim(wish(chargeKey, refundId, amountMinor), "w1"), (answer) =>
    answer._tag === "Claimed" ? Effect.succeed(answer.refund) : Effect.die(new Error(`expected Claimed, got ${answer._tag}`))))
const common = ({ amountMinor, chargeKey, lease }: ClaimedRefund) => ({ refundKey: lease.refundKey, chargeKey, amountMinor, alreadySettled: false })
const refunded = (refund: ClaimedRefund) => ({ lease: refund.lease, outcome: new Refunded({ ...common(refund), processorRefundId: `re_${refund.refundId}` }) })
const refused = (refund: ClaimedRefund) => ({ lease: refund.lease, outcome: new RefundRefused({ ...common(refund), code: "permission_denied", detail: "no" }) })

layer(books, { timeout: 60_000, excludeTestServices: true })("at a locked row of the books on PostgreSQL", (it) => {
  it.effect("two refunds of one payment give back together no more than was paid", () => Effect.gen(function*() {
    const book = yield* RefundLedger
    const chargeKey = yield* asked("rest", "paid")
    const answers = yield* atCharge(chargeKey).inTurn(book.claim(wish(chargeKey, "1", 700), "w1"), book.claim(wish(chargeKey, "2", 700), "w2"))
    assert.deepStrictEqual(tags(answers), ["Claimed", "TooLarge"])
  }))

  it.effect("a refund that its late holder settles is told to who asks for it, and not taken", () => Effect.gen(function*() {
    const book = yield* RefundLedger
    const chargeKey = yield* asked("late", "paid")
    const refund = yield* refundOf(chargeKey, "1", 400)
    yield* runOut
    const answers = yield* at("refunds", "refund_key", refund.lease.refundKey).inTurn(book.settle(refunded(refund)), book.claim(wish(chargeKey, "1", 400), "w2"))
    assert.deepStrictEqual(tags(answers), ["Settled", "AlreadySettled"])
  }))

  it.effect("a refusal does not overwrite a refund", () => Effect.gen(function*() {
    const book = yield* RefundLedger
    const refund = yield* refundOf(yield* asked("twice", "paid"), "1", 400)
    const answers = yield* at("refunds", "refund_key", refund.lease.refundKey).inTurn(book.settle(refunded(refund)), book.settle(refused(refund)))
    assert.deepStrictEqual(tags(answers), ["Settled", "Recorded"])
    assert.strictEqual((yield* book.find(refund.lease.refundKey))?.state, "succeeded")
  }))

  it.effect("of two people who bill a charge anew one opens the next revision", () => Effect.gen(function*() {
    const book = yield* RefundLedger
    const chargeKey = yield* asked("anew", "paid")
    yield* book.settle(refunded(yield* refundOf(chargeKey, "1", 1000)))
    const anew = book.rebill({ chargeKey, amountMinor: 900 as AmountMinor, ...act })
    assert.deepStrictEqual(tags(yield* atCharge(chargeKey).inTurn(anew, anew)), ["Opened", "Present"])
  }))

  it.effect("a sweep of refunds does not wait for one in other hands, and takes the others", () => Effect.gen(function*() {
    const book = yield* RefundLedger
    const chargeKey = yield* asked("swept", "paid")
    const [held, free] = [yield* refundOf(chargeKey, "1", 400), yield* refundOf(chargeKey, "2", 400)]
    yield* runOut
    const sweep = Effect.map(book.takeExpired("s", 1000), (taken) => taken.filter((refund) => refund.chargeKey === chargeKey).map(({ refundId }) => refundId))
    assert.deepStrictEqual(yield* at("refunds", "refund_key", held.lease.refundKey).without(sweep), [free.refundId])
    assert.deepStrictEqual(yield* sweep, [held.refundId])
  }))

  it.effect("two first claims of a planned charge give it to one", () => Effect.gen(function*() {
    const book = yield* RunLedger
    const request = chargeFor("planned", "2026-11")
    yield* book.begin({ runId: "planned", source: "a.csv" })
    yield* book.stage("planned", [{ line: 1, chargeKey: request.chargeKey, request }])
    yield* book.plan("planned")
    const [ours, theirs] = [yield* Ledger, yield* theirLedger]
    assert.deepStrictEqual(tags(yield* atCharge(request.chargeKey).inTurn(theirs.claim(request, "w1"), ours.claim(request, "w2"))), ["Claimed", "InProgress"])
  }))

  it.effect("rows that are dropped are not planned, and rows that are planned are not dropped", () => Effect.gen(function*() {
    const book = yield* RunLedger
    const staged = Effect.fnUntraced(function*(runId: string) {
      const request = chargeFor(runId, "2026-11")
      yield* book.begin({ runId, source: "a.csv" })
      yield* book.stage(runId, [{ line: 1, chargeKey: request.chargeKey, request }])
      return request.chargeKey
    })
    const found = (chargeKey: ChargeKey) => Effect.flatMap(Ledger, (ledger) => Effect.map(ledger.find(chargeKey), (row) => row?.state))
    const lines = (runId: string) => Effect.map(book.report(runId, 0, 10), (rows) => rows.length)
    const begun = yield* staged("begun")
    const [, plan] = yield* at("runs", "run_id", "begun").inTurn(book.begin({ runId: "begun", source: "b.csv" }), book.plan("begun"))
    assert.deepStrictEqual([plan, yield* found(begun)], [{ planned: 0, present: 0 }, undefined])
    for (const [runId, late] of [["kept", book.begin({ runId: "kept", source: "b.csv" })], ["held", book.discard("held")]] as const) {
      const chargeKey = yield* staged(runId)
      yield* at("runs", "run_id", runId).inTurn(book.plan(runId), late)
      assert.deepStrictEqual([yield* found(chargeKey), yield* lines(runId)], ["planned", 1])
    }
  }))

  it.effect("a run that is planned in parts, and waits for charges that wait for it, is planned in one", () => Effect.gen(function*() {
    const book = yield* RunLedger
    const sql = yield* SqlClient.SqlClient
    const rows = planPart + 2
    const staged = (charges: string) => `select ${charges} from (select md5('parts' || n) as key, n from generate_series(1, ${rows}) as n) r`
    yield* sql.unsafe(`insert into purser.run_rows (run_id, line, charge_key, namespace, customer_id, billing_period, amount_minor, currency, stripe_customer_id)
      ${staged("'parts', n, key, 'n', 'c' || n, '2026-12', n, 'usd', 'cus'")}`)
    const theirs = (n: number) => sql.unsafe(`insert into purser.charges (charge_key, namespace, customer_id, billing_period, amount_minor, currency, stripe_customer_id, state, planned_at, updated_at)
      ${staged("key, 'n', 'c' || n, '2026-12', n, 'usd', 'cus', 'planned', now(), now()")} where n = ${n}`)
    const plan = yield* whileOpen(
      // Only the plan looks whether one waits for the other, so that it is the one that is rolled back.
      Effect.andThen(sql.unsafe("set local deadlock_timeout = '10min'"), theirs(rows)),
      Effect.gen(function*() {
        const planning = yield* Effect.forkDetach(book.plan("parts"))
        yield* untilWaiting(1)
        return planning
      }),
      theirs(1)
    )
    assert.deepStrictEqual(yield* Fiber.join(plan), { planned: rows - 2, present: 2 })
    const [lying] = yield* sql.unsafe<{ readonly mixed: boolean }>(`select max(ctid) filter (where amount_minor between 2 and ${planPart}) > min(ctid) filter (where amount_minor = ${rows - 1}) as mixed
      from purser.charges where billing_period = '2026-12'`)
    assert.isTrue(lying?.mixed)
  }))

  it.effect("a run that is staged and planned twice is as after the first time, and opens nothing that is to be billed anew", () => Effect.gen(function*() {
    const book = yield* RunLedger
    const sql = yield* SqlClient.SqlClient
    const requests = [chargeFor("twice-planned", "2026-11"), chargeFor("anew-planned", "2026-11", { revision: 1 })]
    const rows = requests.map((request, index) => ({ line: index + 1, chargeKey: request.chargeKey, request }))
    yield* book.begin({ runId: "again", source: "a.csv" })
    for (const _ of [1, 2]) yield* book.stage("again", rows)
    for (const _ of [1, 2]) yield* book.plan("again")
    assert.deepStrictEqual((yield* book.report("again", 0, 10)).map(({ line, state }) => [line, state]), [[1, "planned"], [2, "staged"]])
    const kept = yield* sql.unsafe<{ readonly figures: string }>("select planned || ' planned, ' || present || ' present' as figures from purser.runs where run_id = 'again'")
    assert.deepStrictEqual(kept.map(({ figures }) => figures), ["1 planned, 1 present"])
  }))

  it.effect("of a run nothing is asked for again that was put aside or is in conflict, and a planned run is not forgotten for another one", () => Effect.gen(function*() {
    const book = yield* RunLedger
    const ledger = yield* Ledger
    const sql = yield* SqlClient.SqlClient
    const names = ["again-plain", "again-aside", "again-conflict"]
    const keys = yield* Effect.forEach(names, (name) => asked(name, "declined"))
    yield* ledger.quarantine({ chargeKey: keys[1]!, worker: "w1", epoch: 1 }, "looked at")
    const requests = names.map((name, index) => chargeFor(name, "2026-11", index === 2 ? { amountMinor: 900 } : {}))
    for (const runId of ["retried", "other"]) {
      yield* book.begin({ runId, source: "a.csv" })
      yield* book.stage(runId, requests.map((request, index) => ({ line: index + 1, chargeKey: request.chargeKey, request })))
      yield* book.plan(runId)
    }
    assert.deepStrictEqual((yield* book.unpaid("retried", ["declined"], 0, 10)).map(({ chargeKey }) => chargeKey), [keys[0]!])
    yield* book.absorb("retried", "other")
    assert.strictEqual((yield* sql.unsafe("select 1 from purser.runs where run_id = 'other'")).length, 1)
  }))

  it.effect("a run changes from a state that it still has, opens one round for two, and is taken by a runner once", () => Effect.gen(function*() {
    const runs = yield* RunRegistry
    yield* runs.register({ runId: "run", name: "run", state: "running", definition: "file", params: null, options: null, actor: "ada" })
    const row = at("run_registry", "run_id", "run")
    const note = runs.note("run", { runner: "r1" })
    yield* row.inTurn(note, note)
    assert.deepStrictEqual((yield* runs.events("run")).map(({ act: what }) => what), ["running", "taken"])
    const [paused, finished] = yield* row.inTurn(
      runs.change({ runId: "run", from: ["running"], to: "paused", actor: "ada" }), runs.change({ runId: "run", from: ["running"], to: "finished", actor: "r1" })
    )
    assert.deepStrictEqual([paused?.state, finished], ["paused", undefined])
    yield* runs.change({ runId: "run", from: ["paused"], to: "failed", actor: "r1" })
    const extend = runs.extend({ runId: "run", params: null, actor: "ada" })
    assert.deepStrictEqual((yield* row.inTurn(extend, extend)).map((round) => round?.round), [2, undefined])
  }))

  it.effect("of two commands with the same input one has it in hand", () => Effect.gen(function*() {
    const runs = yield* RunRegistry
    yield* (yield* WorkerBook).beat({ worker: "w1", host: "here", pid: 7, serves: "run a.csv", version: "0" })
    yield* DatabaseClock.advance("1 second")
    const register = (runId: string) =>
      runs.register({ runId, name: runId, state: "running", definition: "command", params: {}, options: null, actor: "ada", runner: "w1", digest: "d1" })
    const answers = yield* inTurn("select pg_advisory_xact_lock(hashtextextended('purser.run_registry ' || $1::text, 0))", ["d1"], register("one"), register("two"))
    assert.deepStrictEqual(answers.map(({ isNew, run }) => [run.runId, isNew]), [["one", true], ["one", false]])
  }))

  it.effect("a case is opened once, and for a charge that is still declined", () => Effect.gen(function*() {
    const book = yield* DunningBook
    const ledger = yield* Ledger
    const twice = yield* asked("opened", "declined")
    assert.deepStrictEqual(tags(yield* atCharge(twice).inTurn(book.open(twice, act), book.open(twice, act))), ["Opened", "Present"])
    const again = yield* asked("reopened", "declined")
    const [, answer] = yield* atCharge(again).inTurn(ledger.reopen({ chargeKeys: [again], from: ["declined"], ...act }), book.open(again, act))
    assert.deepStrictEqual(answer, { _tag: "NotDeclined", state: "attached" })
    const [held, free] = [yield* asked("due-held", "declined"), yield* asked("due-free", "declined")]
    const openDue = book.openDue({ maxAgeMs: 3_600_000, limit: 1000, ...act })
    const cases = Effect.forEach([held, free], (key) => Effect.map(book.casesOf(key), ({ length }) => length))
    assert.notStrictEqual(yield* atCharge(held).without(openDue), "waits")
    assert.deepStrictEqual(yield* cases, [0, 1])
    yield* openDue
    assert.deepStrictEqual(yield* cases, [1, 1])
  }))

  it.effect("a case that ended meanwhile keeps its end, and a wait that is over stays over", () => Effect.gen(function*() {
    const book = yield* DunningBook
    const opened = Effect.fnUntraced(function*(name: string) {
      const answer = yield* book.open(yield* asked(name, "declined", { paymentMethod: null }), act)
      if (answer._tag !== "Opened") return yield* Effect.die(new Error(`expected Opened, got ${answer._tag}`))
      const { caseId } = answer.case
      yield* book.look(caseId, 1)
      yield* book.waits(caseId, 1, 60_000, "no room")
      return { caseId, chargeKey: answer.case.chargeKey, row: at("dunning_cases", "case_id", caseId), paid: book.close(caseId, "paid", act) }
    })
    const closed = yield* opened("closed")
    assert.deepStrictEqual(yield* closed.row.inTurn(closed.paid, book.close(closed.caseId, "given_up", act)), [true, false])
    assert.strictEqual((yield* book.casesOf(closed.chargeKey))[0]?.case.state, "paid")
    const offered = yield* opened("offered")
    assert.deepStrictEqual(yield* offered.row.inTurn(offered.paid, book.offer("cus_offered", null, act)), [true, 0])
    const roomy = yield* opened("roomy")
    const request = chargeFor("roomy", "2026-11")
    assert.deepStrictEqual(yield* roomy.row.inTurn(roomy.paid, book.roomMade(request)), [true, 0])
    // Another method is for a charge that is declined, and not for one that is at work again.
    const again = yield* opened("at-work")
    yield* (yield* Ledger).reopen({ chargeKeys: [again.chargeKey], from: ["declined"], ...act })
    yield* book.close(again.caseId, "new_method", act)
    yield* book.openDue({ maxAgeMs: 3_600_000, limit: 1000, ...act })
    assert.strictEqual((yield* book.casesOf(again.chargeKey)).length, 1)
    const waits = yield* opened("waits")
    yield* waits.row.inTurn(book.offer("cus_waits", null, act), book.waits(waits.caseId, 1, 60_000))
    assert.isNull((yield* book.casesOf(waits.chargeKey))[0]!.case.goesOnAtMs, "the offer is looked at at once")
  }))

  it.effect("an event in other hands is left to them, and its first verdict stands", () => Effect.gen(function*() {
    const inbox = yield* WebhookInbox
    for (const id of ["evt_held", "evt_free"]) yield* inbox.receive({ id, type: "t", createdMs: 0, account: null, subject: "payment", objectId: "pi_1" })
    const row = at("webhook_events", "event_id", "evt_held")
    const take = Effect.map(inbox.take(100, 1000), (due) => due.map(({ event }) => event.id))
    assert.deepStrictEqual(yield* row.without(take), ["evt_free"])
    assert.deepStrictEqual(yield* take, ["evt_held"])
    yield* row.inTurn(inbox.finish("evt_held", "settled", null), inbox.finish("evt_held", "ignored", null))
    yield* inbox.postpone("evt_held", 0, "late")
    assert.deepStrictEqual((yield* inbox.recent(10)).filter(({ event }) => event.id === "evt_held").map(({ verdict }) => verdict), ["settled"])
  }))
})
