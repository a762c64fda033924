/** `purser runner`: runs what was handed over, until stopped. */
import { DeadLetters } from "@purser/core"
import {
  BillingRun, ChargePipeline, ChargeWorker, layerRunCron, layerRunTending, layerRunWorkflow, PipelineOptions, Reconciler, Refunds, RunDefinitions, Runs, Sweeper
} from "@purser/engine"
import { Database } from "@purser/postgres"
import { PurserDunning, QueryRun, Runner, Stores, takeOverAfter, Telemetry } from "@purser/purser"
import { StripeAccount, StripeGateway, StripeRefunds } from "@purser/stripe"
import { Config, Duration, Effect, Layer } from "effect"
import { hostname } from "node:os"
import { endingWithin } from "../boundedEnd.ts"
import { serving } from "../launch.ts"
import { note } from "../ui/Output.ts"
import { fileRun } from "./fileRun.ts"
import { beating, oneName } from "./oneName.ts"
import { watchPauses } from "./pause.ts"
import { type TransportChoice, transportOf } from "./runTransport.ts"

const named = oneName(`runner-${hostname()}`)

const stack = (options: TransportChoice) => {
  const stores = Stores.layerConfig
  const stripe = Layer.mergeAll(StripeGateway.layerConfig, StripeRefunds.layer, StripeAccount.layerConfig)
  const pipeline = Layer.mergeAll(ChargePipeline.layer, Refunds.layer).pipe(Layer.provideMerge(stripe))
  const charging = Layer.mergeAll(Reconciler.layerNoDeps, Sweeper.layerNoDeps).pipe(Layer.provideMerge(pipeline))
  const worker = ChargeWorker.layerNoDeps.pipe(Layer.provideMerge(charging))
  const wire = transportOf(options).pipe(Layer.provide(DeadLetters.layerSink))
  const definitions = RunDefinitions.layer(fileRun, QueryRun.definition)
  // An engine runs only what is registered with it: what starts runs comes after.
  const runs = Layer.mergeAll(layerRunCron, layerRunTending).pipe(Layer.provideMerge(layerRunWorkflow), Layer.provide(definitions))
  const workflows = Layer.mergeAll(runs, PurserDunning.layerServing).pipe(Layer.provideMerge(Runs.layer))
  return workflows.pipe(
    Layer.provide(Runner.layer),
    Layer.provide(BillingRun.layer),
    Layer.provideMerge(worker),
    Layer.provide(wire),
    Layer.provideMerge(stores),
    Layer.provideMerge(named)
  )
}

/** What was taken is finished; what else is not closed when others would have taken it over is closed by the end of the process. */
const patience = Config.all([
  Config.Duration("PURSER_DRAIN_TIMEOUT").pipe(Config.withDefault(Duration.seconds(10))),
  takeOverAfter
])

const program = (options: TransportChoice) =>
  Effect.gen(function*() {
    const database = yield* Database
    const { worker } = yield* PipelineOptions.fromConfig
    yield* watchPauses
    yield* Telemetry.watchStores
    yield* beating(`runs, ${options.workers} workers`)
    const { run } = yield* ChargeWorker
    for (let started = 0; started < options.workers; started++) {
      yield* Effect.forkScoped(Effect.tapCause(run, (cause) => Effect.logError("a worker stopped", cause)))
    }
    yield* note(`runner ${worker} on ${database.label}, ${options.workers} workers`)
    if (database.kind === "pglite") yield* note("The embedded database serves this process alone: to share the work with other runners, set PURSER_DATABASE_URL.")
    return yield* serving(Effect.never)
  })

/** Serves until stopped. */
export const runner = (options: TransportChoice) =>
  Effect.flatMap(patience, ([drain, takeOver]) => endingWithin(program(options), stack(options), Duration.sum(drain, takeOver)))
