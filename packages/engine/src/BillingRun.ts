/**
 * A billing run over one input: stage all rows, check them as a whole, open the caps, plan, dispatch over the transport,
 * and account for every row.
 *
 * Nothing is sent to a worker before the whole input is staged and its totals are known to fit. A run that is cut short
 * is gone on with by starting it again: what is settled stays settled.
 */
import {
  type CapReport, type CapScope, capOf, ChargeClient, ChargePause, type LedgerError, RunLedger, type RunRow, type RunStateTotal, type RunTotal,
  CapClosed, SpendCap, SpendCapError
} from "@purser/core"
import { Config, Context, Duration, Effect, Layer, Stream } from "effect"
import { compareRows } from "./CompareRows.ts"
import type { DispatchError } from "./DispatchError.ts"
import { boundedInt } from "./internal/boundedInt.ts"
import { makeDispatch } from "./internal/dispatchRows.ts"
import { rowsInBook } from "./internal/rowsInBook.ts"
import { runPatience } from "./internal/runSettings.ts"
import type { DispatchInput, DispatchLines } from "./RunDispatch.ts"
import { DuplicateIdentities, NothingToCharge, RunError, TermsChanged, TotalOverCap } from "./RunError.ts"

/** What a person expects one cap's charges to add up to. `undefined` keeps a cap that is open as it is. */
export interface CapDecision {
  readonly scope: CapScope
  readonly expected: { readonly expectedMinor: bigint; readonly headroomPercent: number } | undefined
}

/** Totals of the input beside the caps that are open for them. */
export interface RunCheck {
  readonly totals: ReadonlyArray<{ readonly total: RunTotal; readonly cap: CapReport | undefined }>
}

/** What planning needs to know. */
export interface PlanInput<E, E2, R, R2> {
  readonly runId: string
  readonly source: string
  /** Chunks of rows, in line order. */
  readonly rows: Stream.Stream<ReadonlyArray<RunRow>, E, R>
  /** Says what is expected of each total, after all rows were read and before anything is opened or planned. */
  readonly decide: (check: RunCheck) => Effect.Effect<ReadonlyArray<CapDecision>, E2, R2>
  /** With `fits`, rows that do not fit are refused one by one; by default the whole input is. */
  readonly overCap?: "refuse" | "fits"
  /** Stops before caps are opened and rows are planned. */
  readonly dryRun?: boolean
  /** A planned run that these rows come late for: they are put behind its own, without those that it has. One that it has with other terms refuses them all. */
  readonly extends?: string
}

/** What planning found. */
export interface PlanReport {
  readonly rows: number
  readonly check: RunCheck
  readonly planned: number
  readonly present: number
}

/** Chunks of the input that may wait for the book. */
const chunksAhead = 2

const options = Config.all({
  pageSize: boundedInt("PURSER_RUN_PAGE", { minimum: 1, maximum: 100_000, default: 1000 }),
  patience: runPatience,
  pause: Config.Duration("PURSER_RUN_PAUSE").pipe(Config.withDefault(Duration.seconds(1)))
})

/** Plans and dispatches billing runs. */
export class BillingRun extends Context.Service<BillingRun, {
  /** Stages, checks and plans; fails before anything is charged. A refused or dry run leaves no trace in the ledger. */
  readonly plan: <E, E2, R = never, R2 = never>(input: PlanInput<E, E2, R, R2>) => Effect.Effect<PlanReport, E | E2 | RunError | LedgerError | SpendCapError, R | R2>
  /**
   * Submits all rows that are still to be charged, again and again while some stay open, until none is or until nothing
   * has been settled for `PURSER_RUN_PATIENCE`. Answers the run's own account from the ledger.
   *
   * A row that was answered by an outcome is not submitted again. Where the ledger has nothing of such an answer, or every attempt was
   * refused, it fails with that, and the rows are as the ledger has them.
   */
  readonly dispatch: (input: DispatchInput) => Effect.Effect<ReadonlyArray<RunStateTotal>, LedgerError | DispatchError>
  /** Submits the rows of some lines that are still to be charged, once each. Ends early when nothing has been settled for `PURSER_RUN_PATIENCE`. */
  readonly dispatchLines: (input: DispatchLines) => Effect.Effect<void, LedgerError | DispatchError>
  /** Rows that are read at a time, `PURSER_RUN_PAGE`. */
  readonly pageSize: number
}>()("@purser/engine/BillingRun") {
  /** Runs over the app's transport, run book and cap. */
  static readonly layer: Layer.Layer<BillingRun, Config.ConfigError, ChargeClient | RunLedger | SpendCap> = Layer.effect(
    BillingRun,
    Effect.gen(function*() {
      const client = yield* ChargeClient
      const book = yield* RunLedger
      const cap = yield* SpendCap
      const { pageSize, patience, pause } = yield* options
      const same = (a: CapScope, b: CapScope) =>
        a.namespace === b.namespace && a.billingPeriod === b.billingPeriod && a.currency === b.currency

      const checkTotals = Effect.fnUntraced(function*(input: { readonly runId: string; readonly source: string }) {
        const totals = yield* book.totals(input.runId)
        if (totals.length === 0) return yield* new RunError({ reason: new NothingToCharge({ source: input.source }) })
        const caps = yield* cap.report()
        return { totals: totals.map((total) => ({ total, cap: caps.find((open) => same(open, total)) })) }
      })

      /** Rows that the run has with other terms would be passed over with those that it has: nobody would be told of the difference. */
      const refuseChanged = Effect.fnUntraced(function*(runId: string, late: { readonly runId: string; readonly source: string }) {
        const { changed } = yield* Effect.provideService(compareRows(runId, rowsInBook(late.runId)), RunLedger, book)
        if (changed.length > 0) return yield* new RunError({ reason: new TermsChanged({ source: late.source, rows: changed.length, line: changed[0]! }) })
      })

      const openCaps = Effect.fnUntraced(function*(runId: string, check: RunCheck, decisions: ReadonlyArray<CapDecision>, overCap: "refuse" | "fits", dryRun: boolean) {
        for (const { cap: open, total } of check.totals) {
          const expected = decisions.find(({ scope }) => same(scope, total))?.expected
          const capMinor = expected === undefined ? open?.capMinor ?? 0n : capOf(expected.expectedMinor, expected.headroomPercent)
          const reservedMinor = open?.reservedMinor ?? 0n
          const neededMinor = total.amountMinor - total.coveredMinor
          if (overCap === "refuse" && open?.closed === true && neededMinor > 0n) {
            const { billingPeriod, currency } = total
            return yield* new SpendCapError({ reason: new CapClosed({ billingPeriod, currency }), chargeKey: null })
          }
          if (overCap === "refuse" && neededMinor > 0n && reservedMinor + neededMinor > capMinor) {
            return yield* new RunError({
              reason: new TotalOverCap({ billingPeriod: total.billingPeriod, currency: total.currency, neededMinor, reservedMinor, capMinor })
            })
          }
        }
        if (dryRun) return
        for (const { expected, scope } of decisions) {
          if (expected !== undefined) yield* cap.open({ ...scope, ...expected, runId })
        }
      })

      const plan = <E, E2, R, R2>(input: PlanInput<E, E2, R, R2>) =>
        Effect.gen(function*() {
          yield* book.begin({ runId: input.runId, source: input.source })
          // The next rows are read while those before are on their way to the book, which then takes all that wait in one act.
          yield* Stream.runForEachArray(Stream.buffer(input.rows, { capacity: chunksAhead }), (chunks) => book.stage(input.runId, chunks.flat()))
          const duplicates = yield* book.duplicates(input.runId, 20)
          if (duplicates.length > 0) return yield* new RunError({ reason: new DuplicateIdentities({ duplicates }) })
          if (input.extends !== undefined) yield* refuseChanged(input.extends, input)
          const check = yield* checkTotals(input)
          const decisions = yield* input.decide(check)
          yield* openCaps(input.extends ?? input.runId, check, decisions, input.overCap ?? "refuse", input.dryRun === true)
          const rows = check.totals.reduce((sum, { total }) => sum + total.rows, 0)
          if (input.dryRun === true) {
            yield* book.discard(input.runId)
            return { rows, check, planned: 0, present: 0 }
          }
          const isNew = check.totals.every(({ total }) => total.presentRows === 0)
          if (input.extends === undefined) return { rows, check, ...(yield* book.plan(input.runId, isNew)) }
          const added = yield* book.absorb(input.extends, input.runId)
          yield* book.plan(input.extends)
          return { rows, check, planned: added, present: rows - added }
        }).pipe(
          Effect.onError(() => Effect.ignore(book.discard(input.runId))),
          Effect.withSpan("BillingRun.plan", { attributes: { runId: input.runId } })
        )

      const { lines, untilSettled, waitForBook } = makeDispatch({
        client, book, pageSize, patience, pause, shared: yield* Effect.serviceOption(ChargePause)
      })

      const dispatch = Effect.fn("BillingRun.dispatch")(function*(input: DispatchInput) {
        const summary = yield* Effect.tapError(untilSettled(input), (error) =>
          error._tag === "DispatchError" ? waitForBook(book.finish(input.runId, "stopped")) : Effect.void)
        if (input.stop?.isStopped() !== true) yield* waitForBook(book.finish(input.runId, "finished"))
        return summary
      })

      return BillingRun.of({ plan, dispatch, dispatchLines: Effect.fn("BillingRun.dispatchLines")(lines), pageSize })
    })
  )
}
