/** `purser run FILE --detach`: plans here, where the file and the person are, and hands the run over to runners. */
import { RunRegistry } from "@purser/core"
import { BillingRun, newRunId, Runs, stagedDefinition } from "@purser/engine"
import { Runner, Stores, transports } from "@purser/purser"
import { Database } from "@purser/postgres"
import { Effect, Layer } from "effect"
import { note, out } from "../ui/Output.ts"
import { planFile, type RunOptions } from "./planFile.ts"
import { noNotes } from "./runInput.ts"

const layer = Layer.mergeAll(Runs.layer.pipe(Layer.provide(Runner.layerClient)), BillingRun.layer.pipe(Layer.provide(transports.memory))).pipe(
  Layer.provideMerge(Stores.layerConfig)
)

/** Hands the file over under a name. */
export const detach = (options: RunOptions, name: string) =>
  Effect.gen(function*() {
    const known = yield* (yield* RunRegistry).find(name)
    if (known !== undefined) {
      return yield* options.json
        ? out(JSON.stringify({ runId: known.runId, name, state: known.state, isNew: false }))
        : out(`run ${name} (${known.runId}) is ${known.state}; it was started before, and nothing was planned`)
    }
    const id = yield* newRunId
    const notes = noNotes()
    const plan = yield* planFile(options, id, notes)
    const { isNew, run } = yield* (yield* Runs).start({
      name, definition: stagedDefinition, params: { file: options.file }, actor: options.actor, plannedAs: id, options: { concurrency: options.concurrency }
    })
    yield* options.json
      ? out(JSON.stringify({ runId: run.runId, name, state: run.state, isNew, rows: plan.rows, refused: notes.refusedRows }))
      : out(`run ${name} (${run.runId}): ${plan.planned} charges planned, ${plan.present} known already; purser runs watch ${name} follows it`)
    if ((yield* Database).kind === "pglite") yield* note("The embedded database serves one process: start `purser runner` for the run to go on.")
  }).pipe(Effect.scoped, Effect.provide(layer))
