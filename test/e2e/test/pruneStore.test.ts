/** Retention counts first, deletes what is over, and leaves everything that may still move, on both databases with the real engine. */
import { type ChargeRequest, Declined, DunningBook, Ledger, RunLedger, RunRegistry, Succeeded } from "@purser/core"
import { DatabaseClock, engineTables, PgDunningBook, PgLedger, PgRetention, PgRunLedger, PgRunRegistry, type RetentionAges } from "@purser/postgres"
import * as TestDatabase from "@purser/postgres/TestDatabase"
import { Runner } from "@purser/purser"
import { chargeFor } from "@purser/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer, Option, Schedule, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { DurableDeferred, Workflow } from "effect/workflow"

const Signal = DurableDeferred.make("signal")
const Job = Workflow.make("Job", { payload: { name: Schema.String, waits: Schema.Boolean }, success: Schema.String, idempotencyKey: ({ name }) => name })
const jobs = Job.toLayer(Effect.fnUntraced(function*({ name, waits }) {
  if (waits) yield* DurableDeferred.await(Signal)
  return name
}))

const none: RetentionAges = { engine: Duration.days(9999), runs: Duration.days(9999), dunning: Duration.days(9999), webhooks: Duration.days(9999) }
const messages = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  return (yield* sql.unsafe<{ readonly count: number }>(`select count(*)::int as count from ${engineTables}_messages`))[0]!.count
})

/** A run of one charge, ended long ago. */
const endedRun = Effect.fnUntraced(function*(name: string, settle: boolean) {
  const registry = yield* RunRegistry
  const book = yield* RunLedger
  const request = chargeFor(name, "2026-01")
  yield* book.begin({ runId: name, source: name })
  yield* book.stage(name, [{ line: 1, chargeKey: request.chargeKey, request }])
  yield* book.plan(name)
  const ledger = yield* Ledger
  const answer = yield* ledger.claim(request, "w")
  if (settle && answer._tag === "Claimed") {
    const { attempt, generation, lease } = answer.charge
    const { chargeKey } = request
    const paymentIntentId = `pi_${chargeKey}`
    yield* ledger.attach({ lease, generation, paymentIntentId, paymentMethod: "pm_card_visa" })
    const outcome = new Succeeded({ chargeKey, alreadySettled: false, paymentIntentId, chargeId: "ch_1", amountReceivedMinor: request.amountMinor })
    yield* ledger.settle({ lease, attempt, paymentIntentId, outcome })
  }
  yield* registry.register({ runId: name, name, state: "running", definition: "plain", params: null, options: null, actor: "test" })
  yield* registry.change({ runId: name, from: ["running"], to: "finished", actor: "test" })
  return request
})

/** Declines an attempt of the charge, or pays it. */
const attempted = Effect.fnUntraced(function*(request: ChargeRequest, paid: boolean) {
  const ledger = yield* Ledger
  const answer = yield* ledger.claim(request, "w")
  if (answer._tag !== "Claimed") return yield* Effect.die(new Error(`Bug: ${answer._tag}`))
  const { attempt, generation, lease } = answer.charge
  const { chargeKey } = request
  const paymentIntentId = `pi_${chargeKey}`
  yield* ledger.attach({ lease, generation, paymentIntentId, paymentMethod: "pm_card_visa" })
  const outcome = paid
    ? new Succeeded({ chargeKey, alreadySettled: false, paymentIntentId, chargeId: "ch_1", amountReceivedMinor: request.amountMinor })
    : new Declined({ chargeKey, alreadySettled: false, paymentIntentId, code: "card_declined", declineCode: "expired_card", adviceCode: null, detail: "no" })
  yield* ledger.settle({ lease, attempt, paymentIntentId, outcome })
})
const by = { actor: "test", reason: "test" }
/** Opens a case for the charge and ends it, with its workflow. */
const endedCase = Effect.fnUntraced(function*({ chargeKey }: ChargeRequest, end: "given_up" | "new_method" | "paid" | null) {
  const book = yield* DunningBook
  const opened = yield* book.open(chargeKey, by)
  if (opened._tag !== "Opened") return yield* Effect.die(new Error(`Bug: ${opened._tag}`))
  if (end === null) return opened.case.caseId
  yield* book.close(opened.case.caseId, end, by)
  yield* book.finished(opened.case.caseId)
  return opened.case.caseId
})

describe("retention", () => {
  for (const [name, database] of TestDatabase.layers) {
    it.live(`forgets executions that are over, and none that waits, on ${name}`, () =>
      Effect.gen(function*() {
        const retention = yield* PgRetention
        for (const job of ["a", "b", "c"]) assert.strictEqual(yield* Job.execute({ name: job, waits: false }), job)
        const waiting = yield* Job.execute({ name: "waits", waits: true }, { discard: true })
        yield* Job.poll(waiting).pipe(Effect.repeat({ until: Option.isSome, schedule: Schedule.spaced("20 millis") }))
        const before = yield* messages
        assert.deepStrictEqual((yield* retention.count(none)).executions, 0)
        const counted = yield* retention.count({ ...none, engine: Duration.zero })
        assert.deepStrictEqual([counted.executions, counted.engineRows], [3, 6])
        assert.strictEqual(yield* messages, before)
        assert.deepStrictEqual(yield* retention.prune({ ...none, engine: Duration.zero }), counted)
        assert.strictEqual(yield* messages, before - 3)
        yield* DurableDeferred.succeed(Signal, { token: yield* DurableDeferred.tokenFromPayload(Signal, { workflow: Job, payload: { name: "waits", waits: true } }), value: undefined })
        assert.strictEqual(yield* Job.execute({ name: "waits", waits: true }), "waits")
        assert.strictEqual((yield* retention.prune({ ...none, engine: Duration.zero })).executions, 1)
        assert.strictEqual(yield* messages, 0)
      }).pipe(Effect.provide(jobs.pipe(Layer.provideMerge(Runner.layer), Layer.provideMerge(PgRetention.layer), Layer.provideMerge(database)))), 60_000)

    it.live(`forgets dunning cases that ended, but not the last one of a charge that is not paid, on ${name}`, () =>
      Effect.gen(function*() {
        const retention = yield* PgRetention
        const book = yield* DunningBook
        const [paid, unpaid, open, busy] = ["paid", "unpaid", "open", "busy"].map((customer) => chargeFor(customer, "2026-01")) as [ChargeRequest, ChargeRequest, ChargeRequest, ChargeRequest]
        for (const request of [paid, unpaid, open, busy]) yield* attempted(request, false)
        yield* endedCase(paid, "given_up")
        const gone = yield* endedCase(unpaid, "new_method")
        const last = yield* endedCase(unpaid, "given_up")
        yield* endedCase(open, null)
        // Ended, and its workflow has not seen it.
        const busyCase = yield* endedCase(busy, null)
        yield* book.close(busyCase, "canceled", by)
        yield* (yield* Ledger).reopen({ chargeKeys: [paid.chargeKey], from: ["declined"], ...by })
        yield* attempted(paid, true)
        yield* DatabaseClock.advance("40 days")
        assert.strictEqual((yield* retention.count({ ...none, dunning: Duration.days(41) })).dunningCases, 0)
        const counted = yield* retention.count({ ...none, dunning: Duration.days(39) })
        assert.deepStrictEqual([counted.dunningCases, counted.runs, counted.webhookEvents], [2, 0, 0])
        assert.strictEqual((yield* book.list({ onlyOpen: false, limit: 100 })).length, 5)
        assert.deepStrictEqual(yield* retention.prune({ ...none, dunning: Duration.days(39) }), counted)
        const left = (yield* book.list({ onlyOpen: false, limit: 100 })).map((view) => view.case)
        assert.deepStrictEqual(left.map(({ state }) => state).toSorted(), ["canceled", "given_up", "open"])
        assert.isFalse(left.some(({ caseId }) => caseId === gone))
        assert.strictEqual((yield* (yield* Ledger).find(paid.chargeKey))?.state, "succeeded")
        // No id is given twice.
        const next = yield* endedCase(unpaid, null)
        assert.isFalse([gone, last].includes(next))
        assert.deepStrictEqual((yield* book.casesOf(unpaid.chargeKey)).map((view) => view.case.number), [3, 2])
      }).pipe(Effect.provide(Layer.mergeAll(PgRetention.layer, PgLedger.layer, PgDunningBook.layer).pipe(Layer.provideMerge(database)))), 60_000)

    it.live(`forgets runs whose charges are settled, and no charge, on ${name}`, () =>
      Effect.gen(function*() {
        const retention = yield* PgRetention
        const settled = yield* endedRun("settled", true)
        const open = yield* endedRun("open", false)
        yield* DatabaseClock.advance("40 days")
        assert.strictEqual((yield* retention.count({ ...none, runs: Duration.days(41) })).runs, 0)
        const counted = yield* retention.count({ ...none, runs: Duration.days(39) })
        assert.deepStrictEqual([counted.runs, counted.runRows, counted.executions], [1, 1, 0])
        const registry = yield* RunRegistry
        assert.isDefined(yield* registry.find("settled"))
        assert.deepStrictEqual(yield* retention.prune({ ...none, runs: Duration.days(39) }), counted)
        assert.isUndefined(yield* registry.find("settled"))
        assert.deepStrictEqual(yield* registry.events("settled"), [])
        assert.strictEqual(yield* (yield* RunLedger).lastLine("settled"), 0)
        assert.deepStrictEqual([(yield* registry.find("open"))?.state, yield* (yield* RunLedger).lastLine("open")], ["finished", 1])
        const ledger = yield* Ledger
        assert.strictEqual((yield* ledger.find(settled.chargeKey))?.state, "succeeded")
        assert.isAbove((yield* ledger.events(settled.chargeKey)).length, 2)
        assert.strictEqual((yield* ledger.find(open.chargeKey))?.state, "claimed")
      }).pipe(Effect.provide(
        Layer.mergeAll(PgRetention.layer, PgLedger.layer, PgRunLedger.layer, PgRunRegistry.layer).pipe(Layer.provideMerge(database))
      )), 60_000)
  }
})
