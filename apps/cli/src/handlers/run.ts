/** `purser run FILE`: reads, checks, plans, dispatches and accounts for every row of a billing file. */
import { type CapReport, type ChargeKey, ChargePause, DeadLetters, type Pause, RunLedger, type RunRecord, type RunStateTotal, SpendCap } from "@purser/core"
import {
  BillingRun, ChargePipeline, ChargeWorker, CommandRun, type CommandRunNews, type DispatchError, newRunId, noProgress, openRows, PipelineOptions, type PlanReport, retryRows, type RunProgress, Sweeper
} from "@purser/engine"
import { Stores, Telemetry, transports } from "@purser/purser"
import { StripeGateway } from "@purser/stripe"
import { Effect, Layer, Ref, Result, type Scope } from "effect"
import { resolve } from "node:path"
import { CommandFailed, exitStatus } from "../CommandFailed.ts"
import { note, out } from "../ui/Output.ts"
import { withProgress } from "../ui/RunProgressView.ts"
import { fileDigest } from "./fileDigest.ts"
import { beating, oneName } from "./oneName.ts"
import { pauseText, waitIfPaused } from "./pause.ts"
import { planFile, type RunOptions } from "./planFile.ts"
import { noRoomNotes, noRoomText } from "./noRoom.ts"
import { isProcessGone, thisProcess } from "./processGone.ts"
import { writeReport } from "./reportFile.ts"
import { type InputNotes, noNotes } from "./runInput.ts"
import { transportOf } from "./runTransport.ts"
import { showConflicts } from "./showConflicts.ts"
import { countsOf, type RunCounts, summaryText, sumsOf } from "./runReport.ts"

const statusOf = (counts: RunCounts, expectedRows: number): number => {
  const added = counts.succeeded + counts.declined + counts.rejected + counts.processing + counts.requiresAction + counts.conflict + counts.unresolved
  return added === counts.rows && counts.rows === expectedRows && counts.succeeded === counts.rows ? 0 : exitStatus.partial
}

interface Account {
  readonly runId: string
  readonly summary: ReadonlyArray<RunStateTotal>
  readonly notes: InputNotes
  readonly expectedRows: number
  readonly caps: ReadonlyArray<CapReport>
  /** Charges that were settled before this run and tried again by it. */
  readonly retried: ReadonlySet<ChargeKey>
  /** Charges that were to be tried again, and stand as they stood. */
  readonly withoutRoom: number
  readonly lastError: string | undefined
  /** Why the run was canceled, where it was. */
  readonly canceled: string | null
  /** Why the dispatch was given up, where it was. */
  readonly givenUp: DispatchError | undefined
}

const account = Effect.fnUntraced(function*(options: RunOptions, { canceled, caps, expectedRows, givenUp, lastError, notes, retried, runId, summary, withoutRoom }: Account) {
  const counts = countsOf(summary, notes.refusedRows, retried.size)
  if (counts.conflict > 0) yield* showConflicts(runId)
  // Before the machine's line, which is the last one; a report that fails takes nothing from the account.
  const report = options.report === undefined
    ? undefined
    : yield* Effect.result(writeReport(options.report, runId, { refusals: notes.refusals, retried }))
  if (report !== undefined && Result.isSuccess(report)) yield* note(`report: ${options.report}`)
  yield* options.json
    ? out(JSON.stringify({ ...counts, ...sumsOf(summary, caps) }))
    : out(`\n${summaryText(counts, summary, caps, canceled !== null || givenUp?.outcome === "not_charged")}`)
  if (report !== undefined && Result.isFailure(report)) {
    return yield* new CommandFailed({
      text: `the report could not be written: ${report.failure.message}. Run the same command again for it; nothing is charged twice.`,
      status: exitStatus.partial
    })
  }
  const status = statusOf(counts, expectedRows)
  if (counts.rows !== expectedRows) {
    return yield* new CommandFailed({ text: `the account has ${counts.rows} rows, the file ${expectedRows}: this must not happen`, status })
  }
  if (status !== 0) {
    if (canceled !== null) {
      return yield* new CommandFailed({ text: `The run was canceled: ${canceled}\n${counts.rows - counts.succeeded} of ${counts.rows} rows are not paid; those that were not sent are not started.`, status })
    }
    if (givenUp !== undefined) {
      const next = givenUp.outcome === "not_charged" ? " by this run. Run the same command again once its key is let in." : "."
      return yield* new CommandFailed({ text: `${counts.rows - counts.succeeded} of ${counts.rows} rows are not paid, by this run's ledger.\n${givenUp.message}${next}`, status })
    }
    const open = counts.unresolved === 0 ? "" : " Unresolved charges are gone on with by running the same command again, or by `purser sweep`."
    const cause = counts.unresolved === 0
      ? ""
      : lastError === undefined ? " No worker has answered for as long as the run waits." : ` The last error was: ${lastError}`
    return yield* new CommandFailed({ text: `${counts.rows - counts.succeeded} of ${counts.rows} rows are not paid.${noRoomText(withoutRoom)}${open}${cause}`, status })
  }
})

interface PlannedRun {
  readonly id: string
  readonly notes: InputNotes
  readonly plan: PlanReport
  readonly startWorkers: Effect.Effect<void, never, Scope.Scope>
}

/** Why nothing more is sent: a person's word about the run, or a pause of all charging. */
const heldText = (news: CommandRunNews | undefined, detail: string, pauses: ReadonlyArray<Pause>): string | undefined =>
  news === "held" || news === "canceled" ? `${news}: ${detail}` : pauses.map(pauseText).join("; ") || undefined

/** What a person at another place has said about the run. */
const tell = (news: CommandRunNews, { detail, name }: RunRecord) =>
  note(news === "held" ? `held: ${detail ?? ""}. Nothing more is sent; \`purser runs resume ${name}\` goes on.`
    : news === "goes on" ? "the run goes on"
    : `canceled: ${detail ?? ""}. Nothing more is sent; what was sent is settled.`)

/** Everything after planning. */
const charge = Effect.fnUntraced(function*(options: RunOptions, { id, notes, plan, startWorkers }: PlannedRun) {
  const hand = yield* CommandRun
  const book = yield* RunLedger
  const cap = yield* SpendCap
  const pause = yield* ChargePause
  let retried: ReadonlySet<ChargeKey> = new Set()
  let withoutRoom = 0
  if (options.retry.length > 0) {
    const noRoom = noRoomNotes()
    const again = yield* retryRows({
      runId: id, states: options.retry, actor: options.actor, reason: `purser run --retry, run ${id}`, onNoRoom: noRoom.told
    })
    retried = again.retried
    withoutRoom = again.withoutRoom
    yield* note(`${again.moved} ${options.retry.join(" and ")} charges are tried again`)
    yield* noRoom.summary(withoutRoom)
  }
  yield* note(`run ${id}: ${plan.planned} charges planned, ${plan.present} known already`)
  const progress = yield* Ref.make<RunProgress>(noProgress)
  let said: { readonly news: CommandRunNews; readonly detail: string } | undefined
  const dispatch = hand.dispatch({ runId: id, concurrency: options.concurrency, progress }, (news, run) => {
    said = { news, detail: run.detail ?? "" }
    return tell(news, run)
  })
  const open = openRows(yield* book.summary(id))
  if (options.paused) {
    yield* pause.pause({ cause: "person", actor: options.actor, reason: `purser run --paused, run ${id}` })
  }
  if (open > 0) yield* waitIfPaused("Planned, and nothing charged.")
  if (open > 0) yield* startWorkers
  const inRun = (open: CapReport) => plan.check.totals.some(({ total }) =>
    total.namespace === open.namespace && total.billingPeriod === open.billingPeriod && total.currency === open.currency)
  const capsOfRun = Effect.map(cap.report(), (all) => all.filter(inRun))
  yield* Telemetry.watchStores
  const watched = open === 0 ? dispatch : withProgress(dispatch, progress, open, {
    title: `${options.file}  run ${id}`,
    caps: Effect.orElseSucceed(capsOfRun, () => []),
    held: Effect.map(pause.view, (pauses) => heldText(said?.news, said?.detail ?? "", pauses))
  })
  const ended = Effect.map(watched, (end) => ({ ...end, givenUp: undefined }))
  const { canceled, givenUp, summary } = yield* Effect.onInterrupt(ended, () => note("Stopped. Run the same command again to go on.")).pipe(
    Effect.catchTag("DispatchError", (givenUp) => Effect.map(book.summary(id), (summary) => ({ summary, canceled: null, givenUp })))
  )
  const caps = yield* capsOfRun
  const { lastError } = yield* Ref.get(progress)
  yield* account(options, { runId: id, summary, notes, expectedRows: plan.rows + notes.refusedRows, caps, retried, withoutRoom, lastError, canceled, givenUp })
})

/** `startWorkers` is called once there is something to dispatch: until then nothing in this process talks to Stripe. */
const program = Effect.fnUntraced(function*(options: RunOptions, startWorkers: Effect.Effect<void, never, Scope.Scope>) {
  const id = yield* newRunId
  const notes = noNotes()
  const { worker } = yield* PipelineOptions.fromConfig
  const wish = {
    runId: id, source: options.file === "-" ? "-" : resolve(options.file), actor: options.actor, worker,
    digest: options.dryRun ? undefined : yield* fileDigest(options), process: thisProcess(), isGone: isProcessGone
  }
  const hand = yield* CommandRun
  yield* hand.free(wish)
  const plan = yield* planFile(options, id, notes)
  if (options.dryRun) {
    yield* out(options.json ? JSON.stringify({ dryRun: true, rows: plan.rows, refused: notes.refusedRows }) : `${plan.rows} rows can be charged; nothing was sent or planned.`)
    return
  }
  const work = charge(options, { id, notes, plan, startWorkers })
  yield* Effect.catchIf(
    hand.registered(wish, work, (error) => error._tag === "CommandFailed").pipe(Effect.annotateLogs({ runId: id }), Effect.annotateSpans({ "purser.run_id": id })),
    (error) => error._tag !== "CommandFailed" && error._tag !== "RunError",
    // From here on money may have moved: this is never "nothing was sent".
    (error) => Effect.fail(new CommandFailed({
      text: `${error.message}\nThe run was cut short; charges may have been made. Run the same command again to go on: nothing is charged twice.`,
      status: exitStatus.partial
    }))
  )
})

/** A worker with its key and settings checked, that does nothing until it is run. */
const workerLayer = ChargeWorker.layerNoDeps.pipe(
  Layer.provide(Sweeper.layerNoDeps),
  Layer.provide(ChargePipeline.layer),
  Layer.provide(StripeGateway.layerConfig)
)

const startWorkers = (worker: ChargeWorker["Service"], count: number) =>
  Effect.forEach(
    Array.from({ length: count }),
    () => Effect.forkScoped(Effect.tapCause(worker.run, (cause) => Effect.logError("a worker stopped", cause))),
    { discard: true }
  )

/** Runs a billing file to its end. */
export const run = (options: RunOptions) => {
  const base = CommandRun.layer.pipe(Layer.provideMerge(BillingRun.layer), Layer.provideMerge(
    (options.dryRun ? transports.memory : transportOf(options)).pipe(Layer.provide(DeadLetters.layerSink), Layer.provideMerge(Stores.layerConfig))
  ))
  if (options.dryRun) return Effect.scoped(program(options, Effect.void)).pipe(Effect.provide(base))
  const alive = beating(`run ${options.file}, ${options.workers} workers`)
  const named = oneName("worker")
  if (options.workers === 0) {
    return Effect.scoped(Effect.andThen(alive, program(options, Effect.void))).pipe(Effect.provide(base.pipe(Layer.provideMerge(named))))
  }
  return Effect.flatMap(ChargeWorker, (worker) => Effect.scoped(Effect.andThen(alive, program(options, startWorkers(worker, options.workers))))).pipe(
    Effect.provide(workerLayer.pipe(Layer.provideMerge(base), Layer.provideMerge(named)))
  )
}
