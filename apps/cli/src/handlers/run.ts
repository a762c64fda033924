/** `purser run FILE`: reads, checks, plans, dispatches and accounts for every row of a billing file. */
import { type CapReport, type ChargeKey, ChargePause, DeadLetters, Ledger, Money, RunLedger, type RunStateTotal, SpendCap } from "@purser/core"
import { BillingRun, ChargePipeline, ChargeWorker, noProgress, openRows, type PlanReport, type RunCheck, type RunProgress, Sweeper } from "@purser/engine"
import { Stores, Telemetry, type TransportName, transports } from "@purser/purser"
import { StripeGateway } from "@purser/stripe"
import { Clock, Effect, Layer, Random, Ref, Result, type Scope } from "effect"
import { Prompt } from "effect/cli"
import { CommandFailed, exitStatus, refused } from "../CommandFailed.ts"
import type { InputOptions } from "../input/InputOptions.ts"
import { note, out } from "../ui/Output.ts"
import { withProgress } from "../ui/RunProgressView.ts"
import { Tty } from "../ui/Tty.ts"
import { decideCaps, type ExpectedTotal } from "./expectedTotals.ts"
import { comparison, lastBilled } from "./lastPeriod.ts"
import { waitIfPaused } from "./pause.ts"
import { checkReport, conflictText, writeReport } from "./reportFile.ts"
import { type InputNotes, noNotes, runRows, skippedText } from "./runInput.ts"
import { transportOf } from "./runTransport.ts"
import { countsOf, type RunCounts, summaryText, sumsOf } from "./runReport.ts"

/** What the command line says. */
export interface RunOptions {
  readonly file: string
  readonly input: InputOptions
  readonly expectedTotals: ReadonlyArray<ExpectedTotal>
  readonly headroomPercent: number
  readonly allowPeriods: ReadonlyArray<string>
  readonly skipInvalid: boolean
  readonly overCap: "refuse" | "fits"
  readonly retry: ReadonlyArray<"declined" | "rejected">
  readonly transport: TransportName | undefined
  /** Of workers elsewhere, or of their broker. */
  readonly endpoint: string | undefined
  readonly workers: number
  readonly concurrency: number
  readonly dryRun: boolean
  readonly paused: boolean
  readonly json: boolean
  readonly yes: boolean
  readonly report: string | undefined
  /** Who overrides what, for the log. */
  readonly actor: string
}

const ask = Effect.fnUntraced(function*(question: string) {
  const answer = yield* Prompt.run(Prompt.Confirm({ message: question, initial: false }))
  if (!answer) return yield* refused("Stopped; nothing was charged.")
})

/** Shows the totals, and asks what a person should be asked before money moves. */
const confirmTotals = Effect.fnUntraced(function*(check: RunCheck, notes: InputNotes, options: RunOptions) {
  const tty = yield* Tty
  const caps = yield* (yield* SpendCap).report()
  const farOff: Array<string> = []
  for (const { cap, total } of check.totals) {
    const last = lastBilled(total, caps)
    const beside = last === undefined ? undefined : comparison(total, last)
    if (beside?.farOff !== undefined) farOff.push(`${total.billingPeriod} ${total.currency}: ${beside.farOff}`)
    const amount = Money.formatMinor(total.amountMinor, total.currency)
    yield* note(`${total.billingPeriod} ${total.currency}: ${total.rows} rows, ${amount}${
      cap === undefined ? "" : `; cap ${Money.formatMinor(cap.capMinor, total.currency)}, ${Money.formatMinor(cap.reservedMinor, total.currency)} used`
    }${beside === undefined ? "" : `; ${beside.text}`}`)
  }
  if (notes.refusedRows > 0) yield* note(skippedText(notes))
  if (notes.blankRows > 0) yield* note(`${notes.blankRows} blank rows ignored`)
  for (const text of farOff) yield* note(`warning: ${text}`)
  const unusual = [
    { periods: [...notes.open], what: "not over yet", question: "before the period is over" },
    { periods: [...notes.late], what: "over for more than a year", question: "so late" }
  ].filter(({ periods }) => periods.length > 0)
  for (const { periods, what } of unusual) {
    yield* note(`${what}: ${periods.join(", ")}`)
    if (!options.yes && !tty.interactive) {
      return yield* refused(`${periods.join(", ")} ${periods.length === 1 ? "is" : "are"} ${what}: allow it by name with --allow-period, or with --yes`)
    }
  }
  const named = [...notes.allowed].map((period) => `${period} by --allow-period`)
  const overridden = [...named, ...(options.yes ? unusual.flatMap(({ periods, what }) => periods.map((period) => `${period} (${what}) by --yes`)) : [])]
  if (overridden.length > 0 && !options.dryRun) yield* Effect.logWarning(`billed out of its time, as ${options.actor} decided: ${overridden.join(", ")}`)
  if (options.yes || options.dryRun || !tty.interactive) return
  for (const { periods, question } of unusual) {
    yield* ask(`Bill ${periods.join(", ")} ${question}?`)
    yield* Effect.logWarning(`billed out of its time, as ${options.actor} decided: ${periods.join(", ")} by answer`)
  }
  if (farOff.length > 0) yield* ask("Is that right, though it is far from the last time?")
  if (options.expectedTotals.length === 0) yield* ask("Are these the totals that you expect?")
})

const statusOf = (counts: RunCounts, expectedRows: number): number => {
  const added = counts.succeeded + counts.declined + counts.rejected + counts.processing + counts.requiresAction + counts.conflict + counts.unresolved
  return added === counts.rows && counts.rows === expectedRows && counts.succeeded === counts.rows ? 0 : exitStatus.partial
}

const shownConflicts = 20

/** Names rows whose identity the ledger knows with other terms; a report has all of them. */
const showConflicts = Effect.fnUntraced(function*(runId: string) {
  const book = yield* RunLedger
  let shown = 0
  let afterLine = 0
  for (;;) {
    const rows = yield* book.report(runId, afterLine, 2000)
    for (const row of rows) {
      if (row.state !== "conflict" || shown++ >= shownConflicts) continue
      yield* note(`line ${row.line}: conflict, not charged: ${yield* conflictText(row)}`)
    }
    if (rows.length < 2000) break
    afterLine = rows[rows.length - 1]!.line
  }
  if (shown > shownConflicts) yield* note(`… and ${shown - shownConflicts} more conflicts`)
})

interface Account {
  readonly runId: string
  readonly summary: ReadonlyArray<RunStateTotal>
  readonly notes: InputNotes
  readonly expectedRows: number
  readonly caps: ReadonlyArray<CapReport>
  /** Charges that were settled before this run and tried again by it. */
  readonly retried: ReadonlySet<ChargeKey>
  readonly lastError: string | undefined
}

const account = Effect.fnUntraced(function*(options: RunOptions, { caps, expectedRows, lastError, notes, retried, runId, summary }: Account) {
  const counts = countsOf(summary, notes.refusedRows, retried.size)
  if (counts.conflict > 0) yield* showConflicts(runId)
  // Before the machine's line, which is the last one; a report that fails takes nothing from the account.
  const report = options.report === undefined
    ? undefined
    : yield* Effect.result(writeReport(options.report, runId, { refusals: notes.refusals, retried }))
  if (report !== undefined && Result.isSuccess(report)) yield* note(`report: ${options.report}`)
  yield* options.json
    ? out(JSON.stringify({ ...counts, ...sumsOf(summary, caps) }))
    : out(`\n${summaryText(counts, summary, caps)}`)
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
    const open = counts.unresolved === 0 ? "" : " Unresolved charges are gone on with by running the same command again, or by `purser sweep`."
    const cause = counts.unresolved === 0
      ? ""
      : lastError === undefined ? " No worker has answered for as long as the run waits." : ` The last error was: ${lastError}`
    return yield* new CommandFailed({ text: `${counts.rows - counts.succeeded} of ${counts.rows} rows are not paid.${open}${cause}`, status })
  }
})

const runId = Effect.gen(function*() {
  const at = new Date(yield* Clock.currentTimeMillis).toISOString().replaceAll(/[-:]/g, "").replace(/\..*/, "Z")
  return `${at}-${(yield* Random.nextIntBetween(0, 2 ** 32)).toString(16).padStart(8, "0")}`
})

interface PlannedRun {
  readonly id: string
  readonly notes: InputNotes
  readonly plan: PlanReport
  readonly startWorkers: Effect.Effect<void, never, Scope.Scope>
}

/** Everything after planning. */
const charge = Effect.fnUntraced(function*(options: RunOptions, { id, notes, plan, startWorkers }: PlannedRun) {
  const runs = yield* BillingRun
  const cap = yield* SpendCap
  const retried = new Set<ChargeKey>()
  if (options.retry.length > 0) {
    const book = yield* RunLedger
    const chargeKeys = yield* book.keysIn(id, options.retry)
    const reopened = yield* (yield* Ledger).reopen({ chargeKeys, from: options.retry, actor: "purser run --retry", reason: `run ${id}` })
    for (const chargeKey of chargeKeys) retried.add(chargeKey)
    yield* note(`${reopened} ${options.retry.join(" and ")} charges are tried again`)
  }
  yield* note(`run ${id}: ${plan.planned} charges planned, ${plan.present} known already`)
  const progress = yield* Ref.make<RunProgress>(noProgress)
  const dispatch = runs.dispatch({ runId: id, concurrency: options.concurrency, progress }).pipe(
    Effect.onInterrupt(() => note("\nStopped. Run the same command again to go on."))
  )
  const open = openRows(yield* (yield* RunLedger).summary(id))
  if (options.paused) {
    yield* (yield* ChargePause).pause({ cause: "person", actor: "purser run --paused", reason: `run ${id}` })
  }
  if (open > 0) yield* waitIfPaused("Planned, and nothing charged.")
  if (open > 0) yield* startWorkers
  const inRun = (open: CapReport) => plan.check.totals.some(({ total }) =>
    total.namespace === open.namespace && total.billingPeriod === open.billingPeriod && total.currency === open.currency)
  const capsOfRun = Effect.map(cap.report(), (all) => all.filter(inRun))
  yield* Telemetry.watchStores
  const summary = yield* open === 0 ? dispatch : withProgress(dispatch, progress, open, {
    title: `${options.file}  run ${id}`,
    caps: Effect.orElseSucceed(capsOfRun, () => [])
  })
  const caps = yield* capsOfRun
  const { lastError } = yield* Ref.get(progress)
  yield* account(options, { runId: id, summary, notes, expectedRows: plan.rows + notes.refusedRows, caps, retried, lastError })
})

/** `startWorkers` is called once there is something to dispatch: until then nothing in this process talks to Stripe. */
const program = Effect.fnUntraced(function*(options: RunOptions, startWorkers: Effect.Effect<void, never, Scope.Scope>) {
  const runs = yield* BillingRun
  const id = yield* runId
  const notes = noNotes()
  if (options.report !== undefined && !options.dryRun) yield* checkReport(options.report, options.file)
  const plan = yield* runs.plan({
    runId: id,
    source: options.file,
    rows: runRows(options.file, { ...options.input, skipInvalid: options.skipInvalid, allowPeriods: new Set(options.allowPeriods) }, notes),
    overCap: options.overCap,
    dryRun: options.dryRun,
    decide: (check) =>
      Effect.gen(function*() {
        yield* confirmTotals(check, notes, options)
        return yield* decideCaps(check, options.expectedTotals, options.headroomPercent)
      })
  }).pipe(Effect.tapErrorTag("RunError", ({ reason }) =>
    // All rows were left out, so that nobody has been told yet which and why.
    reason._tag === "NothingToCharge" && notes.refusedRows > 0 ? note(skippedText(notes)) : Effect.void))
  if (options.dryRun) {
    yield* out(options.json ? JSON.stringify({ dryRun: true, rows: plan.rows, refused: notes.refusedRows }) : `${plan.rows} rows can be charged; nothing was sent or planned.`)
    return
  }
  yield* Effect.catchIf(
    charge(options, { id, notes, plan, startWorkers }).pipe(Effect.annotateLogs({ runId: id }), Effect.annotateSpans({ "purser.run_id": id })),
    (error) => error._tag !== "CommandFailed",
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
  const base = BillingRun.layer.pipe(Layer.provideMerge(
    (options.dryRun ? transports.memory : transportOf(options)).pipe(Layer.provide(DeadLetters.layerSink), Layer.provideMerge(Stores.layerConfig))
  ))
  if (options.dryRun || options.workers === 0) return Effect.scoped(program(options, Effect.void)).pipe(Effect.provide(base))
  return Effect.flatMap(ChargeWorker, (worker) => Effect.scoped(program(options, startWorkers(worker, options.workers)))).pipe(
    Effect.provide(workerLayer.pipe(Layer.provideMerge(base)))
  )
}
