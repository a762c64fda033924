/** Dunning from the configuration, for a process that has a workflow engine: the workflow, and the desk that starts and wakes its cases. */
import type { ChargeGateway, DunningBook, Ledger } from "@purser/core"
import { type ChargePipeline, DunningDesk, DunningWorkflow } from "@purser/engine"
import { type Config, Effect, Layer } from "effect"
import type { WorkflowEngine } from "effect/workflow"

/** What dunning is built on. */
export type DunningNeeds = ChargeGateway | ChargePipeline | DunningBook | Ledger | WorkflowEngine.WorkflowEngine

/** Layers of dunning. */
export const PurserDunning: {
  /** Registers the workflow, and tends the cases in the background for as long as the layer lives. */
  readonly layerServing: Layer.Layer<DunningDesk, Config.ConfigError, DunningNeeds>
} = {
  layerServing: Layer.effectDiscard(Effect.flatMap(DunningDesk, ({ run }) => Effect.forkScoped(run))).pipe(
    Layer.provideMerge(DunningDesk.layer),
    // Before the desk starts anything: an engine runs only what is registered with it.
    Layer.provideMerge(DunningWorkflow.layer)
  )
}
