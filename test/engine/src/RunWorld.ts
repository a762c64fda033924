/** Billing runs on the engine in memory: a definition, a world for it, and looks at what came of it. */
import { type ChargeClient, type ChargeRequest, DunningBook, type Ledger, RunLedger, RunRegistry, RunStash, type SpendCap } from "@purser/core"
import { BillingRun, executeRun, layerRunWorkflow, RunDefinition, type RunDefinitions, Runs, type RunWish } from "@purser/engine"
import { chargeFor, MockGateway, TestPipeline } from "@purser/testkit"
import { it } from "@effect/vitest"
import { type Config, ConfigProvider, Effect, Layer, Schedule, Schema, Stream } from "effect"
import { WorkflowEngine } from "effect/workflow"

export const Params = Schema.Struct({ count: Schema.Int, from: Schema.Int })
export const requests = (count: number, from = 0) => Array.from({ length: count }, (_, index) => chargeFor(`c${from + index}`, "2026-07"))
export const rowsOf = (charges: ReadonlyArray<ChargeRequest>) => charges.map((request, index) => ({ line: index + 1, chargeKey: request.chargeKey, request }))
export const plain = RunDefinition.rows("plain", { params: Params, rows: ({ count, from }) => Stream.make(rowsOf(requests(count, from))) })

const settings = (giveUp: string, more: Readonly<Record<string, string>>) => ConfigProvider.layer(ConfigProvider.fromUnknown({
  PURSER_RUN_PAGE: "10", PURSER_RUN_PAUSE: "10 millis", PURSER_RUN_PATIENCE: "300 millis", PURSER_RUN_CONTROL_POLL: "5 millis", PURSER_WORKER: "test",
  PURSER_RUN_GIVE_UP: giveUp, ...more
}))

/** The run book with something changed about it. */
export const bookWith = (change: (book: RunLedger["Service"]) => Partial<RunLedger["Service"]>) =>
  Layer.effect(RunLedger, Effect.map(RunLedger, (book) => RunLedger.of({ ...book, ...change(book) }))).pipe(Layer.provide(RunLedger.layerMemory))
export const world = <R>(
  definitions: Layer.Layer<RunDefinitions, never, R>, giveUp = "1 day", book: Layer.Layer<RunLedger, never, Ledger> = RunLedger.layerMemory, more = {},
  engine: Layer.Layer<WorkflowEngine.WorkflowEngine> = WorkflowEngine.layerMemory,
  runs: Layer.Layer<BillingRun, Config.ConfigError, ChargeClient | RunLedger | SpendCap> = BillingRun.layer
) =>
  Layer.mergeAll(layerRunWorkflow, Runs.layer).pipe(
    Layer.provideMerge(definitions),
    Layer.provideMerge(Layer.mergeAll(runs, engine, RunRegistry.layerMemory, RunStash.layerMemory)),
    Layer.provideMerge(Layer.mergeAll(book, DunningBook.layerMemory)),
    Layer.provideMerge(TestPipeline.layer),
    Layer.provideMerge(settings(giveUp, more)),
    Layer.orDie
  )
export const run = <E>(title: string, definitions: Layer.Layer<RunDefinitions>, test: Effect.Effect<void, E, Layer.Success<ReturnType<typeof world>>>, giveUp?: string) =>
  it.live(title, () => Effect.provide(test, world(definitions, giveUp)))

export const wish = (name: string, params: unknown, more: Partial<RunWish> = {}): RunWish => ({
  name, definition: "plain", params, actor: "test", options: { allowPeriods: ["2026-07"], concurrency: 4, reconcile: false }, ...more
})
export const start = (one: RunWish) => Effect.flatMap(Runs, (runs) => runs.start(one))
export const report = (name: string) =>
  Effect.gen(function*() {
    const registry = yield* RunRegistry
    const found = (yield* registry.find(name))!
    return yield* executeRun(found)
  })
export const view = (name: string) => Effect.flatMap(Runs, (runs) => runs.view(name))
export const payments = (charges: ReadonlyArray<ChargeRequest>) => Effect.forEach(charges, ({ billingPeriod, customerId }) => MockGateway.payments(customerId, billingPeriod))
export const paid = (charges: ReadonlyArray<ChargeRequest>) => Effect.map(payments(charges), (counts) => counts.reduce((sum, count) => sum + count, 0))
/** Waits for a thing to come about. */
export const until = <A, E, R>(look: Effect.Effect<A, E, R>, test: (value: A) => boolean) => Effect.repeat(look, { until: test, schedule: Schedule.spaced("2 millis") })
