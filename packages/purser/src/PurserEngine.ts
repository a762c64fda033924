/**
 * The workflow engine inside a plain program: billing runs and dunning go on in its process, beside whatever else it does, and in
 * `purser runner` elsewhere where there is one. It charges with the program's own pipeline, and needs no transport.
 */
import { ChargeClient, type ChargeGateway, type ChargePause, type DunningBook, type Ledger, type RunLedger, type RunRegistry, type RunStash, type SpendCap } from "@purser/core"
import { BillingRun, ChargePipeline, layerRunTending, layerRunWorkflow, RunDefinitions, Runs, Sweeper } from "@purser/engine"
import type { Database } from "@purser/postgres"
import { type Config, Effect, Layer } from "effect"
import type { SqlClient } from "effect/sql"
import type { EngineUnavailable } from "./EngineUnavailable.ts"
import { PurserDunning } from "./PurserDunning.ts"
import { Runner } from "./Runner.ts"

/** What the engine of a program is built on. */
export type EngineNeeds =
  | ChargeGateway | ChargePipeline | ChargePause | Database | DunningBook | Ledger | RunLedger | RunRegistry | RunStash | SpendCap | SqlClient.SqlClient

const inProcess = Layer.effect(ChargeClient, Effect.map(ChargePipeline, ({ charge }) => ChargeClient.of({ submit: charge })))

/** Layers of the engine in a program. */
export const PurserEngine: {
  /** Runs of rows that are handed over, and dunning, served for as long as the layer lives. */
  readonly layer: Layer.Layer<BillingRun | Runs, Config.ConfigError | EngineUnavailable, EngineNeeds>
  /** The same, with definitions of the program's own. */
  readonly layerNoDefinitions: Layer.Layer<BillingRun | Runs, Config.ConfigError | EngineUnavailable, EngineNeeds | RunDefinitions>
} = (() => {
  const on = (runner: typeof Runner.layer) => Layer.mergeAll(layerRunTending.pipe(Layer.provideMerge(layerRunWorkflow)), PurserDunning.layerServing).pipe(
    Layer.provideMerge(Runs.layer),
    Layer.provide(Sweeper.layerNoDeps),
    Layer.provideMerge(BillingRun.layer.pipe(Layer.provide(inProcess))),
    Layer.provide(runner)
  )
  return {
    layerNoDefinitions: on(Runner.layer),
    // Rows are handed over planned: nothing has to be defined for them, and runs that need a definition go to others.
    layer: on(Runner.layerNoDefinitions).pipe(Layer.provide(Layer.succeed(RunDefinitions, { find: () => undefined })))
  }
})()
