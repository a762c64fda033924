/**
 * What a run of 100,000 charges leaves in the tables of the workflow engine: a few rows for each chunk, and none for a charge.
 * The engine, the register and the dispatch are the real ones on a server; the ledger is a list in memory, so that it takes seconds.
 */
import { ChargeClient, RunLedger, type RunRow, RunRegistry, type RunStateTotal, SpendCap, Succeeded } from "@purser/core"
import { BillingRun, executeRun, layerRunWorkflow, RunDefinition, RunDefinitions, Runs } from "@purser/engine"
import { engineTables, PgRunRegistry } from "@purser/postgres"
import * as TestDatabase from "@purser/postgres/TestDatabase"
import { Runner } from "@purser/purser"
import { chargeFor } from "@purser/testkit"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer, Schema, Stream } from "effect"
import { SqlClient } from "effect/sql"

const rows = 100_000
const page = 1000

/** A run book of so many rows, and the client that settles them. */
const bookAndClient = Layer.effectContext(Effect.sync(() => {
  const all: Array<RunRow> = []
  const isSettled = new Uint8Array(rows)
  let settled = 0
  const total = (state: RunStateTotal["state"], count: number): RunStateTotal => ({
    currency: all[0]!.request.currency, state, rows: count, amountMinor: BigInt(count) * 1000n, receivedMinor: 0n, settledBefore: 0
  })
  let planned = false
  const book: RunLedger["Service"] = {
    begin: () => Effect.void,
    stage: (_, more) => Effect.sync(() => void all.push(...more)),
    duplicates: () => Effect.succeed([]),
    totals: () => Effect.sync(() => {
      const { billingPeriod, currency, namespace } = all[0]!.request
      return [{ namespace, billingPeriod, currency, rows: all.length, amountMinor: 1000n * BigInt(all.length), coveredMinor: 0n, presentRows: 0 }]
    }),
    plan: () => Effect.sync(() => {
      planned = true
      return { planned: all.length, present: 0 }
    }),
    discard: () => Effect.void,
    pending: (_, afterLine, limit, throughLine = rows) => Effect.sync(() => {
      const due: Array<RunRow> = []
      for (let line = afterLine + 1; line <= throughLine && due.length < limit; line++) if (isSettled[line - 1] === 0) due.push(all[line - 1]!)
      return due
    }),
    report: () => Effect.succeed([]),
    termsOf: () => Effect.succeed(new Map()),
    summary: () => Effect.sync(() =>
      all.length === 0 ? [] : planned ? [total("succeeded", settled), total("planned", all.length - settled)].filter(({ rows }) => rows > 0) : [total("staged", all.length)]),
    unpaid: () => Effect.succeed([]),
    lastLine: () => Effect.sync(() => all.length),
    absorb: () => Effect.succeed(0),
    finish: () => Effect.void
  }
  return Context.make(RunLedger, book).pipe(Context.add(ChargeClient, {
    submit: ({ chargeKey, customerId }) => Effect.sync(() => {
      const index = Number(customerId.slice(1))
      assert.strictEqual(isSettled[index], 0)
      isSettled[index] = 1
      settled += 1
      return new Succeeded({ chargeKey, alreadySettled: false, paymentIntentId: "pi_1", chargeId: "ch_1", amountReceivedMinor: 1000 })
    })
  }))
}))

const source = RunDefinition.rows("many", {
  params: Schema.Null,
  rows: () => Stream.range(0, rows / page - 1).pipe(Stream.map((chunk) =>
    Array.from({ length: page }, (_, index): RunRow => {
      const request = chargeFor(`c${chunk * page + index}`, "2026-07")
      return { line: chunk * page + index + 1, chargeKey: request.chargeKey, request }
    })))
})

const world = layerRunWorkflow.pipe(
  Layer.provideMerge(Runs.layer),
  Layer.provide(RunDefinitions.layer(source)),
  Layer.provideMerge(Runner.layer),
  Layer.provide(BillingRun.layer),
  Layer.provide(SpendCap.layerMemory),
  Layer.provideMerge(bookAndClient),
  Layer.provideMerge(PgRunRegistry.layer),
  Layer.provideMerge(TestDatabase.layerPostgres)
)

it.live("a run of 100,000 charges adds some two hundred rows to the engine's tables", () =>
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    const count = (table: string) => Effect.map(sql.unsafe<{ readonly count: number }>(`select count(*)::int as count from ${table}`), ([row]) => row!.count)
    const { run } = yield* (yield* Runs).start({ name: "many", definition: "many", params: null, actor: "test", options: { allowPeriods: ["2026-07"], reconcile: false } })
    const end = yield* executeRun(run)
    assert.deepStrictEqual([end.state, end.rows, end.open], ["finished", rows, 0])
    const messages = yield* count(`${engineTables}_messages`)
    const replies = yield* count(`${engineTables}_replies`)
    const events = yield* count("purser.run_events")
    yield* Effect.logInfo(`${rows} charges in chunks of ${page}: ${messages} messages, ${replies} replies, ${events} events of the run`)
    const chunks = rows / page
    assert.isAtLeast(messages, chunks)
    assert.isAtMost(messages, chunks + 20)
    assert.isAtMost(replies, messages)
    assert.isAtMost(events, 10)
    assert.strictEqual((yield* (yield* RunRegistry).find("many"))?.state, "finished")
  }).pipe(Effect.provide(world)), 120_000)
