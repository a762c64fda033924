/** Stages on the durable engine: a process ends in the middle of one, and its successor runs what was not done, under the same key. */
import { BillingPeriod, ChargeClient, Ledger, RunRegistry } from "@purser/core"
import { BillingRun, ChargePipeline, executeRun, layerRunWorkflow, PipelineOptions, RunDefinition, RunDefinitions, Runs } from "@purser/engine"
import { Database, Migrations, PgLedger, PgRunLedger, PgRunRegistry, PgSpendCap } from "@purser/postgres"
import * as TestDatabase from "@purser/postgres/TestDatabase"
import { Runner } from "@purser/purser"
import { chargeFor, MockGateway } from "@purser/testkit"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, type Redacted, Ref, Schedule, Schema, Stream } from "effect"

const Usage = Schema.Struct({ customerId: Schema.String, units: Schema.Int })
const Priced = Schema.Struct({ customerId: Schema.String, amountMinor: Schema.Int })
type Call = readonly [stage: string, chunk: number, key: string]

/** A definition whose stages write down that they were called; the first stage never comes to an end with chunk 1 when `hangs`. */
const metered = (calls: Ref.Ref<ReadonlyArray<Call>>, hangs: boolean) => {
  const note = (...call: Call) => Ref.update(calls, (all) => [...all, call])
  return RunDefinition.items("metered", {
    params: Schema.Struct({ period: BillingPeriod }),
    item: Usage,
    chunkSize: 2,
    items: () => Stream.make("a", "b", "c", "d").pipe(Stream.map((customerId) => ({ customerId, units: 7 })))
  }).stage("rate", {
    output: Priced,
    run: (items, { chunk, idempotencyKey }) =>
      note("rate", chunk, idempotencyKey).pipe(
        Effect.andThen(hangs && chunk === 1 ? Effect.never : Effect.succeed(items.map(({ customerId, units }) => ({ customerId, amountMinor: units * 100 }))))
      )
  }).charge(({ amountMinor, customerId }) => chargeFor(customerId, "2026-07", { amountMinor })).after("receipt", {
    run: (_, { chunk, idempotencyKey }) => note("receipt", chunk, idempotencyKey)
  })
}

const inProcess = Layer.effect(ChargeClient, Effect.map(ChargePipeline, ({ charge }) => ChargeClient.of({ submit: charge })))
/** One process of its own on the database. */
const process = (url: Redacted.Redacted, calls: Ref.Ref<ReadonlyArray<Call>>, hangs: boolean) =>
  layerRunWorkflow.pipe(
    Layer.provideMerge(Runs.layer),
    Layer.provide(RunDefinitions.layer(metered(calls, hangs))),
    Layer.provideMerge(Layer.fresh(Runner.layer)),
    Layer.provide(BillingRun.layer.pipe(Layer.provide(inProcess))),
    Layer.provide(ChargePipeline.layer),
    Layer.provide(PipelineOptions.layer({ worker: hangs ? "first" : "second" })),
    Layer.provideMerge(Layer.mergeAll(PgLedger.layer, PgSpendCap.layer, PgRunLedger.layer, PgRunRegistry.layer, MockGateway.layer)),
    Layer.provide(Layer.provideMerge(Migrations.layer, Layer.fresh(Database.layerUrl(url))))
  )

it.live("a stage that was cut short runs again under its key, and no other does", () =>
  Effect.gen(function*() {
    const url = yield* TestDatabase.postgresUrl
    const calls = yield* Ref.make<ReadonlyArray<Call>>([])
    const begun = Effect.gen(function*() {
      const { run } = yield* (yield* Runs).start({
        name: "usage", definition: "metered", params: { period: "2026-07" }, actor: "test", options: { allowPeriods: ["2026-07"], reconcile: false }
      })
      yield* Effect.repeat(Ref.get(calls), { until: (all) => all.length === 2, schedule: Schedule.spaced("20 millis") })
      return run
    })
    yield* Effect.scoped(Effect.provide(begun, process(url, calls, true), { local: true }))
    yield* Effect.scoped(Effect.provide(
      Effect.gen(function*() {
        const run = (yield* (yield* RunRegistry).find("usage"))!
        const end = yield* executeRun(run)
        assert.deepStrictEqual([end.state, end.rows, end.open, end.notes], ["finished", 4, 0, []])
        const report = yield* (yield* Ledger).report()
        assert.deepStrictEqual(report.map(({ amountMinor, charges, state }) => [state, charges, amountMinor]), [["succeeded", 4, 2800n]])
        for (const customer of ["a", "b", "c", "d"]) assert.strictEqual(yield* MockGateway.payments(customer, "2026-07"), 1)
      }),
      process(url, calls, false),
      { local: true }
    ))
    const made = yield* Ref.get(calls)
    const of = (stage: string, chunk: number) => made.filter(([name, at]) => name === stage && at === chunk).map(([, , key]) => key)
    assert.deepStrictEqual([of("rate", 0).length, of("rate", 1).length, of("receipt", 0).length], [1, 2, 1])
    assert.strictEqual(new Set(of("rate", 1)).size, 1)
    assert.notStrictEqual(of("rate", 0)[0], of("rate", 1)[0])
  }).pipe(Effect.scoped), 60_000)
