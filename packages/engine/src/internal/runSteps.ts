/** The steps of a run, each safe to repeat: what an activity of the workflow does once it is its turn. */
import { DunningBook, type LedgerError, RunLedger, type RunRecord, RunRegistry, type RunRowReport, RunStash, type RunStateTotal, SpendCap, type SpendCapError } from "@purser/core"
import { Clock, type Duration, Effect, Option, type Semaphore } from "effect"
import { BillingRun } from "../BillingRun.ts"
import type { DispatchError } from "../DispatchError.ts"
import { type Difference, Reconciler } from "../Reconciler.ts"
import { openRows } from "../RunDispatch.ts"
import { countRows, type RunReport } from "../RunReport.ts"
import { Sweeper } from "../Sweeper.ts"
import { followStop, noteWait, patiently, surely, whenCanceled } from "./runControl.ts"
import { WaitNote } from "./WaitNote.ts"

/** What a person has decided about a run. */
export type Verdict = "go" | "hold" | "cancel"

const verdictOf = (run: RunRecord | undefined): Verdict => run === undefined || run.state === "canceling" ? "cancel" : run.state === "paused" ? "hold" : "go"
const skewMs = 600_000

/** Differences of a period that are told one by one. */
const toldMax = 20

/** A difference in one line: which, whose, of which objects, and what became of it. */
const differenceText = ({ chargeKey, customerId, detail, item, kind, objects, repaired }: Difference, dryRun: boolean) => {
  const whose = [customerId === null ? "an unknown customer" : `customer ${customerId}`, ...(item === null ? [] : [`item ${item}`]), ...objects.map(({ id }) => id), ...(chargeKey === "" ? [] : [`charge ${chargeKey}`])]
  return `${kind} (${whose.join(", ")}): ${detail}; ${repaired === null ? "it remains" : dryRun ? `it would be ${repaired}, and nothing was changed` : repaired}`
}

/** Sends; answers why nothing more is to be sent. Whom no worker lets in now may be let in later, so that this is no end. */
const sent = <A>(dispatch: Effect.Effect<A, LedgerError | DispatchError>): Effect.Effect<string | undefined> =>
  surely(dispatch.pipe(
    Effect.as(undefined),
    Effect.catchTag("DispatchError", ({ message, reason }) =>
      reason._tag === "AnsweredElsewhere" ? Effect.as(Effect.logError(message), message) : Effect.as(Effect.logWarning(message), undefined))
  ))

/** Rows that a worker holds or has to look after: they were sent. */
export const inWork = (summary: ReadonlyArray<RunStateTotal>) =>
  summary.filter(({ state }) => state === "claimed" || state === "attached").reduce((sum, { rows }) => sum + rows, 0)

export const makeRunSteps = Effect.fnUntraced(function*(runner: string, { controlEvery, opensCases }: { readonly controlEvery: Duration.Duration; readonly opensCases: boolean }) {
  const registry = yield* RunRegistry
  const book = yield* RunLedger
  const stash = yield* RunStash
  const runs = yield* BillingRun
  const cap = yield* SpendCap
  const sweeper = yield* Effect.serviceOption(Sweeper)
  const reconciler = yield* Effect.serviceOption(Reconciler)
  const dunning = yield* Effect.serviceOption(DunningBook)

  const stopOf = (runId: string) => Effect.provideService(followStop(runId, controlEvery), RunRegistry, registry)
  const find = (runId: string) => surely(registry.find(runId))
  /** Charges whose worker is gone; a sweep that fails leaves them to the next one. */
  const sweep = Option.isNone(sweeper) ? Effect.void : Effect.ignore(sweeper.value.sweepOnce)
  const running = (runId: string) => surely(registry.change({ runId, from: ["waiting", "planned"], to: "running", actor: runner }))

  return {
    parts: { runs, book, stash, canceled: (runId: string) => whenCanceled(registry, runId, controlEvery) },
    find,
    /** A step of a run, as its register knows it: where it is, and why it waits. */
    noted: <A, E>(runId: string, step: string, execute: Effect.Effect<A, E>): Effect.Effect<A, E> =>
      Effect.andThen(surely(registry.note(runId, { runner, step })), execute).pipe(Effect.provideService(WaitNote, noteWait(registry, runId))),
    /** Whether the rows are in the ledger already: whoever handed the run over planned it, or a step that was cut short did. */
    isPlanned: (runId: string) =>
      Effect.map(surely(book.summary(runId)), (summary) => summary.length > 0 && summary.every(({ state }) => state !== "staged")),
    lastLine: (runId: string) => surely(book.lastLine(runId)),
    /** The lines that are still to be charged, up to one: as few ranges as hold them and no other row. */
    left: Effect.fnUntraced(function*(runId: string, throughLine: number) {
      const ranges: Array<{ afterLine: number; throughLine: number }> = []
      for (let after = 0;;) {
        const page = yield* surely(book.pending(runId, after, 1000))
        for (const { line } of page) {
          if (line > throughLine) return ranges
          const last = ranges.at(-1)
          if (last?.throughLine === line - 1) last.throughLine = line
          else ranges.push({ afterLine: line - 1, throughLine: line })
        }
        if (page.length < 1000) return ranges
        after = page.at(-1)!.line
      }
    }),
    planned: (runId: string) => surely(registry.change({ runId, from: ["waiting"], to: "planned", actor: runner })),
    verdict: (runId: string) => Effect.map(find(runId), verdictOf),
    /** The same, and which pause holds it. */
    held: (runId: string) => Effect.map(find(runId), (run) => run !== undefined && verdictOf(run) === "hold" ? { pauses: run.pauses } : verdictOf(run)),

    /** Sends some lines; answers whether it was stopped before all were sent, or why nothing more is to be sent. */
    lines: (runId: string, range: { readonly afterLine: number; readonly throughLine: number }, gate: Semaphore.Semaphore) =>
      Effect.scoped(Effect.gen(function*() {
        yield* running(runId)
        const stop = yield* stopOf(runId)
        const elsewhere = stop.isStopped() ? undefined : yield* sent(runs.dispatchLines({ runId, ...range, gate, stop }))
        return elsewhere === undefined ? stop.isStopped() : { elsewhere }
      })),

    /** Sends whatever is due until nothing is open, or nothing moves. */
    settle: (runId: string, concurrency: number) =>
      Effect.scoped(Effect.gen(function*() {
        yield* running(runId)
        const stop = yield* stopOf(runId)
        if (!stop.isStopped()) yield* sweep
        const elsewhere = stop.isStopped() ? undefined : yield* sent(runs.dispatch({ runId, concurrency, stop }))
        const counted = yield* surely(book.summary(runId))
        yield* surely(registry.note(runId, { counted }))
        return { open: openRows(counted), stopped: stop.isStopped(), ...(elsewhere === undefined ? {} : { elsewhere }) }
      })),

    /** After a cancellation: settles what was sent. Answers how much is still with a worker. */
    drain: (runId: string) =>
      Effect.gen(function*() {
        yield* sweep
        const counted = yield* surely(book.summary(runId))
        yield* surely(registry.note(runId, { counted }))
        return inWork(counted)
      }),

    /** The rows of some lines that are dispatched, as they stand; those that were not sent come in the round that sends them. */
    rows: Effect.fnUntraced(function*(runId: string, { afterLine, throughLine }: { readonly afterLine: number; readonly throughLine: number }) {
      const rows: Array<RunRowReport> = []
      for (let after = afterLine; after < throughLine;) {
        const page = yield* surely(book.report(runId, after, Math.min(1000, throughLine - after)))
        rows.push(...page.filter(({ line }) => line <= throughLine))
        if (page.length === 0) break
        after = page.at(-1)!.line
      }
      const inWork = rows.filter(({ state }) => state === "claimed" || state === "attached").length
      return { settled: rows.filter(({ state }) => state !== "planned" && state !== "claimed" && state !== "attached"), inWork }
    }),

    /** The periods of the run against the account. Answers what remains, or why it could not be compared. */
    reconcile: Effect.fnUntraced(function*(runId: string, repair: boolean): Effect.fn.Return<{ readonly differences: number | null; readonly problem: string | null }> {
      if (Option.isNone(reconciler)) return { differences: null, problem: null }
      const totals = yield* surely(book.totals(runId))
      const run = yield* find(runId)
      const sinceMs = (run?.createdAtMs ?? (yield* Clock.currentTimeMillis)) - skewMs
      const scopes = new Map(totals.map(({ billingPeriod, namespace }) => [JSON.stringify([namespace, billingPeriod]), { billingPeriod, namespace }]))
      const results = yield* Effect.forEach(scopes.values(), (scope) =>
        Effect.suspend(() => {
          let told = 0
          return reconciler.value.reconcile({ ...scope, sinceMs, dryRun: !repair }, (found) =>
            told++ < toldMax ? Effect.logWarning(`reconciliation of run ${runId}: ${differenceText(found, !repair)}`) : Effect.void).pipe(
              Effect.tap(() => told <= toldMax ? Effect.void
                : Effect.logWarning(`reconciliation of run ${runId}: ${told - toldMax} more differences in ${scope.billingPeriod}; purser reconcile ${scope.billingPeriod} lists what remains`)))
        }).pipe(
            Effect.map(({ remaining }) => ({ differences: remaining, problem: null })),
            Effect.catch((error) => Effect.succeed({ differences: null, problem: `${scope.billingPeriod} could not be reconciled: ${error.message}` }))
          ))
      const problem = results.map((one) => one.problem).filter((one) => one !== null).join("; ")
      return { differences: results.reduce((sum, one) => sum + (one.differences ?? 0), 0), problem: problem === "" ? null : problem }
    }),

    /** No more charges for the periods of the run, except where declines are still asked for; answers what a person should know of it. */
    close: Effect.fnUntraced(function*(runId: string): Effect.fn.Return<string | null, SpendCapError> {
      const notes = yield* Effect.forEach(yield* surely(book.totals(runId)), Effect.fnUntraced(function*({ billingPeriod, currency, namespace }) {
        const scope = { billingPeriod, currency, namespace }
        const { asked, unseen } = Option.isNone(dunning) ? { asked: 0, unseen: 0 } : yield* surely(dunning.value.followed(scope))
        // Where cases are opened for declines, those that nobody has looked at get one soon: a new card would find the cap closed.
        const followed = opensCases ? asked + unseen : asked
        if (followed > 0) return `the cap of ${billingPeriod} ${currency} stays open: ${followed} declined ${followed === 1 ? "charge is" : "charges are"} still asked for`
        yield* patiently(cap.close(scope, { actor: runner, reason: `run ${runId} has come to its end` }))
        return unseen === 0 ? undefined
          : `the cap of ${billingPeriod} ${currency} is closed over ${unseen} declined ${unseen === 1 ? "charge" : "charges"}: purser cap reopen opens it, if they are to be asked for again`
      }))
      const told = notes.filter((note) => note !== undefined)
      return told.length === 0 ? null : told.join("; ")
    }),

    /** Counts for the last time, and says how the round ended. */
    end: Effect.fnUntraced(function*(
      { name, round, runId }: Pick<RunReport, "name" | "round" | "runId">,
      state: RunReport["state"],
      differences: number | null,
      notes: ReadonlyArray<string>
    ): Effect.fn.Return<RunReport> {
      const counted = yield* surely(book.summary(runId))
      if (state !== "failed") yield* surely(book.finish(runId, state === "finished" ? "finished" : "stopped"))
      yield* surely(stash.drop(runId))
      yield* surely(registry.note(runId, { counted, step: state }))
      yield* surely(registry.change({
        runId, from: ["waiting", "planned", "running", "paused", "canceling"], to: state, actor: runner, detail: notes.length === 0 ? null : notes.join("; ")
      }))
      return { runId, name, round, state, rows: countRows(counted), open: openRows(counted), differences, notes }
    })
  }
})
