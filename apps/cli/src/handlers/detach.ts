/** `purser run FILE --detach`: plans here, where the file and the person are, and hands the run over to runners. */
import { isRunOver, type RunRecord, RunRegistry } from "@purser/core"
import { BillingRun, compareRows, newRunId, Runs, stagedDefinition } from "@purser/engine"
import { Runner, Stores, transports } from "@purser/purser"
import { PgWorkerBook } from "@purser/postgres"
import { Effect, Layer } from "effect"
import { refused } from "../CommandFailed.ts"
import { out } from "../ui/Output.ts"
import { isReadOnce } from "./fileDigest.ts"
import { planFile, rowsOfFile, type RunOptions } from "./planFile.ts"
import { noNotes } from "./runInput.ts"
import { noteUnattended } from "./unattended.ts"

const layer = Layer.mergeAll(Runs.layer.pipe(Layer.provide(Runner.layerClient)), BillingRun.layer.pipe(Layer.provide(transports.memory)), PgWorkerBook.layer).pipe(
  Layer.provideMerge(Stores.layerConfig)
)

/** The file of a run that is there: late rows are put behind its own once it is over; anything else that differs is refused. */
const again = Effect.fnUntraced(function*(options: RunOptions, run: RunRecord) {
  const { changed, late } = yield* compareRows(run.runId, rowsOfFile(options, noNotes()))
  const { name, runId, state } = run
  if (changed.length > 0) {
    return yield* refused(`run ${name} is there already, and has ${changed.length} of these rows with other terms (the first on line ${changed[0]!}); another --name makes another run`)
  }
  if (late.length === 0) {
    yield* options.json
      ? out(JSON.stringify({ runId, name, state, isNew: false }))
      : out(`run ${name} (${runId}) is ${state}; it was started before, and nothing was planned`)
    return yield* noteUnattended(run)
  }
  const lateText = `${late.length} of these rows ${late.length === 1 ? "is" : "are"} late for run ${name} (the first on line ${late[0]!})`
  if (run.definition !== stagedDefinition) return yield* refused(`${lateText}, which reads its own source: purser runs extend ${name}, or another --name`)
  if (!isRunOver(state)) return yield* refused(`${lateText}, which is ${state}: it takes them once it is over, by the same command; nothing was planned`)
  if (yield* isReadOnce(options.file)) {
    return yield* refused(`${lateText}, and are read a second time to be planned, which ${options.file === "-" ? "standard input" : options.file} cannot be: name a regular file; nothing was planned`)
  }
  const notes = noNotes()
  const plan = yield* planFile(options, `${runId}/${run.round + 1}`, notes, runId)
  const extended = yield* (yield* Runs).extend({ run: runId, actor: options.actor })
  yield* options.json
    ? out(JSON.stringify({ runId, name, state: extended.state, isNew: false, round: extended.round, late: plan.planned, refused: notes.refusedRows }))
    : out(`run ${name} (${runId}): ${plan.planned} late charges planned, round ${extended.round}; purser runs watch ${name} follows it`)
  yield* noteUnattended(extended)
})

/** Hands the file over under a name. */
export const detach = (options: RunOptions, name: string, atEnd: { readonly reconcile: boolean; readonly repair: boolean }) =>
  Effect.gen(function*() {
    const known = yield* (yield* RunRegistry).find(name)
    if (known !== undefined) return yield* again(options, known)
    const id = yield* newRunId
    const notes = noNotes()
    const plan = yield* planFile(options, id, notes)
    const { isNew, run } = yield* (yield* Runs).start({
      name, definition: stagedDefinition, params: { file: options.file }, actor: options.actor, plannedAs: id, options: { concurrency: options.concurrency, ...atEnd }
    })
    // Somebody else gave the name while these rows were planned.
    if (!isNew && (yield* isReadOnce(options.file))) {
      return yield* refused(`run ${name} was started by somebody else meanwhile: run the same command again to hold these rows against it; nothing was started`)
    }
    if (!isNew) return yield* again(options, run)
    yield* options.json
      ? out(JSON.stringify({ runId: run.runId, name, state: run.state, isNew, rows: plan.rows, refused: notes.refusedRows }))
      : out(`run ${name} (${run.runId}): ${plan.planned} charges planned, ${plan.present} known already; purser runs watch ${name} follows it`)
    yield* noteUnattended(run)
  }).pipe(Effect.scoped, Effect.provide(layer))
