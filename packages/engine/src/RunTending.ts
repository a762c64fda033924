/**
 * Looks after runs that the register has and the engine may not: whoever started, resumed or canceled one may have died between the
 * two, or a runner with what it had heard. It starts what is not started, wakes what still sleeps, and resumes what is suspended; that changes nothing where all is well.
 */
import { type LedgerError, type RunRecord, RunRegistry } from "@purser/core"
import { Effect, Layer } from "effect"
import type { WorkflowEngine } from "effect/workflow"
import { foregroundDefinition, isParked, resumeRun, startRun, wakeRun } from "./RunWorkflow.ts"

/** Runs that are looked at in one pass; there are never so many that are not over. */
const runsMax = 1000

const tend = Effect.fnUntraced(function*(run: RunRecord): Effect.fn.Return<void, never, WorkflowEngine.WorkflowEngine> {
  yield* startRun(run)
  if (run.state !== "running" && run.state !== "canceling") return
  yield* wakeRun(run)
  // A long wait of a run that goes on has a timer; whoever cancels one wants it to end.
  if (run.state === "canceling" || !isParked(run)) yield* resumeRun(run)
})

/** One pass over all runs that are not over. */
export const tendRuns: Effect.Effect<void, LedgerError, RunRegistry | WorkflowEngine.WorkflowEngine> = Effect.gen(function*() {
  const registry = yield* RunRegistry
  const runs = yield* registry.list({ states: ["waiting", "planned", "running", "paused", "canceling"], limit: runsMax })
  yield* Effect.forEach(runs.filter(({ definition }) => definition !== foregroundDefinition), tend, { discard: true })
})

/** A pass at the start, and one each minute. */
export const layerRunTending: Layer.Layer<never, never, RunRegistry | WorkflowEngine.WorkflowEngine> = Layer.effectDiscard(
  tendRuns.pipe(
    Effect.catch((error) => Effect.logWarning(`runs could not be looked after: ${error.message}`)),
    Effect.andThen(Effect.sleep("1 minute")),
    Effect.forever,
    Effect.forkScoped
  )
)
