/** `purser runs`: what one may do with billing runs that runners have in work. */
import { type Currency, Money, type RunRecord, RunRegistry, type RunState, standingOf } from "@purser/core"
import { foregroundDefinition, openRows, Runs, stagedDefinition, type RunView, type RunWish } from "@purser/engine"
import { PgWorkerBook } from "@purser/postgres"
import { Runner, Stores } from "@purser/purser"
import { DateTime, Effect, Layer, Stream } from "effect"
import { CommandFailed, exitStatus } from "../CommandFailed.ts"
import { note, out } from "../ui/Output.ts"
import { table } from "../ui/table.ts"
import { countsOf, type RunCounts } from "./runReport.ts"
import { showConflicts } from "./showConflicts.ts"
import { abandonedBy, lostText, noteUnattended, watchUnattended } from "./unattended.ts"

const layer = Layer.mergeAll(Runs.layer, PgWorkerBook.layer).pipe(Layer.provideMerge(Runner.layerClient), Layer.provideMerge(Stores.layerConfig))
const onRuns = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provide(effect, layer)

const time = (ms: number | null) => ms === null ? "" : DateTime.formatIso(DateTime.makeUnsafe(ms)).slice(0, 19).replace("T", " ")
const sums = ({ counted }: RunView) =>
  [...Map.groupBy(counted, ({ currency }) => currency)].map(([currency, totals]) =>
    `${Money.formatMinor(totals.reduce((sum, one) => sum + one.receivedMinor, 0n), currency as Currency)} of ${
      Money.formatMinor(totals.reduce((sum, one) => sum + one.amountMinor, 0n), currency as Currency)} ${currency}`).join(", ")

const lineOf = (abandoned: (run: RunRecord) => string | null) => (view: RunView) => {
  const { run } = view
  const counts = countsOf(view.counted, 0, 0)
  return [
    run.name, standingOf(run), String(counts.rows), String(counts.succeeded), String(openRows(view.counted)), sums(view), run.runner ?? "", time(run.startedAtMs ?? run.createdAtMs), lostText(run) ?? abandoned(run) ?? run.detail ?? ""
  ]
}
const header = ["run", "state", "rows", "paid", "open", "received", "runner", "since", ""]

/** A run for machines. */
const jsonOf = (abandoned: (run: RunRecord) => string | null) => ({ counted, run }: RunView) => ({
  ...run,
  state: standingOf(run),
  abandoned: abandoned(run),
  counted: counted.map((one) => ({ ...one, amountMinor: Number(one.amountMinor), receivedMinor: Number(one.receivedMinor) })),
  counts: countsOf(counted, 0, 0)
})

/** The newest runs. */
export const listRuns = (options: { readonly states: ReadonlyArray<RunState>; readonly limit: number; readonly json: boolean }) =>
  Effect.gen(function*() {
    const registry = yield* RunRegistry
    const runs = yield* Runs
    const found = yield* registry.list({ limit: options.limit, ...(options.states.length === 0 ? {} : { states: options.states }) })
    const views = yield* Effect.forEach(found, ({ runId }) => runs.view(runId))
    const abandoned = yield* abandonedBy
    if (options.json) return yield* out(JSON.stringify(views.map(jsonOf(abandoned))))
    yield* out(views.length === 0 ? "no runs" : table(header, views.map(lineOf(abandoned)), [2, 3, 4]))
  }).pipe(onRuns)

/** What a run that is parked at a step waits for. */
const waitsFor = ({ definition, state, step }: RunRecord) =>
  definition === foregroundDefinition ? "no step: its command has it in hand"
    : step === null ? state === "waiting" ? "no step yet: waits for a runner" : "no step yet"
    : step.startsWith("hold/") ? `${step}: waits until it is resumed or canceled`
    : step.startsWith("wait/drain/") ? `${step}: waits until workers have settled what was sent`
    : step.startsWith("wait/") ? `${step}: waits until charges that are open are due again`
    : step

/** One run, with what happened to it. */
export const showRun = (name: string, json: boolean) =>
  Effect.gen(function*() {
    const view = yield* (yield* Runs).view(name)
    const events = yield* (yield* RunRegistry).events(view.run.runId)
    const abandoned = yield* abandonedBy
    if (json) return yield* out(JSON.stringify({ ...jsonOf(abandoned)(view), events }))
    yield* out(table(header, [lineOf(abandoned)(view)], [2, 3, 4]))
    yield* out(`\nid ${view.run.runId}, round ${view.run.round}, from ${view.run.definition}, at ${waitsFor(view.run)}\n`)
    yield* out(table(["at", "what", "who", ""], events.map(({ act, actor, atMs, detail }) => [time(atMs), act, actor, detail ?? ""])))
  }).pipe(onRuns)

const told = (run: RunRecord) => `run ${run.name} (${run.runId}) is ${standingOf(run)}`

/** How the rows stand that are not paid. */
const whyNot = ({ conflict, declined, processing, rejected, requiresAction, unresolved }: RunCounts) => {
  const unpaid = { conflict, declined, rejected, processing, "waiting for the customer": requiresAction, unresolved }
  const words = Object.entries(unpaid).filter(([, rows]) => rows > 0).map(([how, rows]) => `${rows} ${how}`)
  return words.length === 0 ? "" : `: ${words.join(", ")}`
}

/** Follows a run to its end; the status says how it ended. */
const follow = Effect.fnUntraced(function*(name: string, json: boolean) {
  const runs = yield* Runs
  const changes = runs.watch(name).pipe(Stream.runForEach(({ counted, run }) => {
    const counts = countsOf(counted, 0, 0)
    return json ? Effect.void : note(`${run.name}: ${standingOf(run)}, ${counts.rows - openRows(counted)} of ${counts.rows} settled, ${counts.succeeded} paid${run.step === null ? "" : ` (${run.step})`}`)
  }))
  // Nothing changes of a run that nobody works on.
  yield* Effect.raceFirst(changes, watchUnattended(name))
  const view = yield* runs.view(name)
  const counts = countsOf(view.counted, 0, 0)
  if (counts.conflict > 0) yield* showConflicts(view.run.runId)
  const abandoned = yield* abandonedBy
  yield* out(json ? JSON.stringify(jsonOf(abandoned)(view)) : table(header, [lineOf(abandoned)(view)], [2, 3, 4]))
  // The rows of an interrupted run are charged by the one that went on with them.
  if ((view.run.state !== "finished" && view.run.state !== "interrupted") || counts.succeeded < counts.rows) {
    return yield* new CommandFailed({ text: `${told(view.run)}: ${counts.rows - counts.succeeded} of ${counts.rows} rows are not paid${whyNot(counts)}`, status: exitStatus.partial })
  }
})

/** Follows a run. */
export const watchRun = (name: string, json: boolean) => onRuns(follow(name, json))

/** Hands a run over. */
export const startRun = (wish: RunWish, options: { readonly watch: boolean; readonly json: boolean }) =>
  Effect.gen(function*() {
    const { isNew, run } = yield* (yield* Runs).start(wish)
    if (!options.json || !options.watch) {
      yield* options.json ? out(JSON.stringify({ runId: run.runId, name: run.name, state: run.state, isNew })) : out(`${told(run)}${isNew ? "" : "; it was started before"}`)
    }
    if (options.watch) return yield* follow(run.runId, options.json)
    yield* noteUnattended(run)
  }).pipe(onRuns)

/** Asks for late rows. */
export const extendRun = (input: { readonly run: string; readonly definition?: string; readonly params?: unknown; readonly actor: string }) =>
  Effect.gen(function*() {
    const runs = yield* Runs
    const { definition, name } = (yield* runs.view(input.run)).run
    const run = yield* runs.extend(input).pipe(
      Effect.tapError(() => definition === stagedDefinition ? note(`Late rows: purser run FILE --detach --name ${name}`) : Effect.void)
    )
    yield* out(`${told(run)}, round ${run.round}`)
    yield* noteUnattended(run)
  }).pipe(onRuns)

/** Acts on a run. */
export const actOnRun = (act: "pause" | "resume" | "cancel", run: string, actor: string, reason: string) =>
  Effect.gen(function*() {
    const runs = yield* Runs
    const acted = yield* act === "resume" ? runs.resume(run, actor) : act === "pause" ? runs.pause(run, actor, reason) : runs.cancel(run, actor, reason)
    yield* out(told(acted))
    yield* noteUnattended(acted)
  }).pipe(onRuns)
