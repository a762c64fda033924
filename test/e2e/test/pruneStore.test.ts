/** Retention counts first, deletes what is over, and leaves everything that may still move, on both databases with the real engine. */
import { Ledger, RunLedger, RunRegistry, Succeeded } from "@purser/core"
import { DatabaseClock, engineTables, PgLedger, PgRetention, PgRunLedger, PgRunRegistry, type RetentionAges } from "@purser/postgres"
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

const none: RetentionAges = { engine: Duration.days(9999), runs: Duration.days(9999), webhooks: Duration.days(9999) }
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
