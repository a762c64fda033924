/**
 * A billing run over one input: stage all rows, check them as a whole, open the caps, plan, dispatch over the transport,
 * and account for every row.
 *
 * Nothing is sent to a worker before the whole input is staged and its totals are known to fit. A run that is cut short
 * is gone on with by starting it again: what is settled stays settled.
 */
import {
  type CapReport, type CapScope, capOf, ChargeClient, type ChargeOutcome, ChargePause, type LedgerError, RunLedger, type RunRow, type RunStateTotal, type RunTotal,
  CapClosed, SpendCap, SpendCapError, type SubmitError
} from "@purser/core"
import { Clock, Config, Context, Duration, Effect, Layer, Option, Ref, Schedule, Stream } from "effect"
import { boundedInt } from "./internal/boundedInt.ts"
import { DuplicateIdentities, NothingToCharge, RunError, TotalOverCap } from "./RunError.ts"

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
}

/** What planning found. */
export interface PlanReport {
  readonly rows: number
  readonly check: RunCheck
  readonly planned: number
  readonly present: number
}

/** Which planned run, with how many requests in flight, and where its progress is to be kept. */
export interface DispatchInput {
  readonly runId: string
  readonly concurrency: number
  readonly progress?: Ref.Ref<RunProgress>
}

/** How far a dispatch is; counts of rows. */
export interface RunProgress {
  readonly submitted: number
  readonly outcomes: Readonly<Record<ChargeOutcome["_tag"] | "error", number>>
  readonly lastError: string | undefined
}

/** A dispatch that has not begun. */
export const noProgress: RunProgress = {
  submitted: 0,
  outcomes: { Succeeded: 0, Declined: 0, Processing: 0, RequiresAction: 0, Rejected: 0, Canceled: 0, error: 0 },
  lastError: undefined
}

const isOpen = ({ state }: RunStateTotal) => state === "planned" || state === "claimed" || state === "attached"

/** Rows of a run that are still to be charged. */
export const openRows = (summary: ReadonlyArray<RunStateTotal>): number =>
  summary.filter(isOpen).reduce((sum, total) => sum + total.rows, 0)

const options = Config.all({
  pageSize: boundedInt("PURSER_RUN_PAGE", { minimum: 1, maximum: 100_000, default: 1000 }),
  patience: Config.Duration("PURSER_RUN_PATIENCE").pipe(Config.withDefault(Duration.seconds(60))),
  pause: Config.Duration("PURSER_RUN_PAUSE").pipe(Config.withDefault(Duration.seconds(1)))
})

/** Plans and dispatches billing runs. */
export class BillingRun extends Context.Service<BillingRun, {
  /** Stages, checks and plans; fails before anything is charged. A refused or dry run leaves no trace in the ledger. */
  readonly plan: <E, E2, R = never, R2 = never>(input: PlanInput<E, E2, R, R2>) => Effect.Effect<PlanReport, E | E2 | RunError | LedgerError | SpendCapError, R | R2>
  /**
   * Submits all rows that are still to be charged, again and again while some stay open, until none is or until nothing
   * has been settled for `PURSER_RUN_PATIENCE`. Answers the run's own account from the ledger.
   */
  readonly dispatch: (input: DispatchInput) => Effect.Effect<ReadonlyArray<RunStateTotal>, LedgerError>
}>()("@purser/engine/BillingRun") {
  /** Runs over the app's transport, run book and cap. */
  static readonly layer: Layer.Layer<BillingRun, Config.ConfigError, ChargeClient | RunLedger | SpendCap> = Layer.effect(
    BillingRun,
    Effect.gen(function*() {
      const client = yield* ChargeClient
      const book = yield* RunLedger
      const cap = yield* SpendCap
      const { pageSize, patience, pause } = yield* options
      // While charging is paused nothing is sent and no patience is lost.
      const shared = yield* Effect.serviceOption(ChargePause)
      const whenOpen = Option.isSome(shared) ? shared.value.whenOpen : Effect.void
      const isPaused = Option.isSome(shared) ? Effect.map(shared.value.view, (pauses) => pauses.length > 0) : Effect.succeed(false)
      const same = (a: CapScope, b: CapScope) =>
        a.namespace === b.namespace && a.billingPeriod === b.billingPeriod && a.currency === b.currency

      const checkTotals = Effect.fnUntraced(function*(input: { readonly runId: string; readonly source: string }) {
        const totals = yield* book.totals(input.runId)
        if (totals.length === 0) return yield* new RunError({ reason: new NothingToCharge({ source: input.source }) })
        const caps = yield* cap.report()
        return { totals: totals.map((total) => ({ total, cap: caps.find((open) => same(open, total)) })) }
      })

      const openCaps = Effect.fnUntraced(function*(check: RunCheck, decisions: ReadonlyArray<CapDecision>, overCap: "refuse" | "fits", dryRun: boolean) {
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
          if (expected !== undefined) yield* cap.open({ ...scope, ...expected })
        }
      })

      const plan = <E, E2, R, R2>(input: PlanInput<E, E2, R, R2>) =>
        Effect.gen(function*() {
          yield* book.begin({ runId: input.runId, source: input.source })
          yield* Stream.runForEach(input.rows, (rows) => book.stage(input.runId, rows))
          const duplicates = yield* book.duplicates(input.runId, 20)
          if (duplicates.length > 0) return yield* new RunError({ reason: new DuplicateIdentities({ duplicates }) })
          const check = yield* checkTotals(input)
          const decisions = yield* input.decide(check)
          yield* openCaps(check, decisions, input.overCap ?? "refuse", input.dryRun === true)
          const rows = check.totals.reduce((sum, { total }) => sum + total.rows, 0)
          if (input.dryRun === true) {
            yield* book.discard(input.runId)
            return { rows, check, planned: 0, present: 0 }
          }
          return { rows, check, ...(yield* book.plan(input.runId)) }
        }).pipe(
          Effect.onError(() => Effect.ignore(book.discard(input.runId))),
          Effect.withSpan("BillingRun.plan", { attributes: { runId: input.runId } })
        )

      const submit = (row: RunRow, progress: Ref.Ref<RunProgress> | undefined, settledOne: Effect.Effect<void>) => {
        const note = (tag: keyof RunProgress["outcomes"], lastError?: string) =>
          progress === undefined ? Effect.void : Ref.update(progress, (p): RunProgress => ({
            submitted: p.submitted + 1,
            outcomes: { ...p.outcomes, [tag]: p.outcomes[tag] + 1 },
            lastError: lastError ?? p.lastError
          }))
        return Effect.andThen(whenOpen, client.submit(row.request)).pipe(
          Effect.flatMap((outcome) => Effect.andThen(note(outcome._tag), settledOne)),
          Effect.catch((error: SubmitError) =>
            Effect.logDebug(`line ${row.line} stays open: ${error.message}`).pipe(
              Effect.andThen(note("error", error.message))
            )
          )
        )
      }

      /** The store may be away for a while in mid-run; workers hand their charges back, and the run waits. */
      const waitForBook = <A>(call: Effect.Effect<A, LedgerError>) =>
        Effect.retry(call, {
          while: (error) => error.isRetryable,
          schedule: Schedule.spaced(pause),
          times: Math.ceil(Duration.toMillis(patience) / Math.max(1, Duration.toMillis(pause)))
        })

      /** One pass over all rows that are due. */
      const pass = ({ concurrency, progress, runId }: DispatchInput, settledOne: Effect.Effect<void>) =>
        Stream.paginate<number, RunRow, LedgerError>(0, (afterLine) =>
          Effect.map(waitForBook(book.pending(runId, afterLine, pageSize)), (rows) =>
            [rows, rows.length < pageSize ? Option.none() : Option.some(rows[rows.length - 1]!.line)] as const)
        ).pipe(
          Stream.mapEffect((row) => submit(row, progress, settledOne), { concurrency, unordered: true }),
          Stream.runDrain
        )

      const dispatch = Effect.fn("BillingRun.dispatch")(function*(input: DispatchInput) {
        let lastOpen = Number.POSITIVE_INFINITY
        let lastProgressMs = yield* Clock.currentTimeMillis
        const settledOne = Effect.map(Clock.currentTimeMillis, (nowMs) => {
          lastProgressMs = nowMs
        })
        const patienceMs = Duration.toMillis(patience)
        // A pass over many rows that nobody answers would take hours: it ends when nothing has been settled for so long.
        const impatience: Effect.Effect<void> = Effect.gen(function*() {
          for (;;) {
            const leftMs = lastProgressMs + patienceMs - (yield* Clock.currentTimeMillis)
            if (yield* isPaused) {
              yield* Effect.andThen(whenOpen, settledOne)
              continue
            }
            if (leftMs <= 0) return
            yield* Effect.sleep(leftMs)
          }
        })
        for (;;) {
          yield* Effect.raceFirst(pass(input, settledOne), impatience)
          const summary = yield* waitForBook(book.summary(input.runId))
          const open = openRows(summary)
          const nowMs = yield* Clock.currentTimeMillis
          if (open < lastOpen || (yield* isPaused)) lastProgressMs = nowMs
          lastOpen = open
          if (open === 0 || nowMs - lastProgressMs >= patienceMs) {
            yield* book.finish(input.runId, "finished")
            return summary
          }
          // What is open now is held by a worker or waits for its next try.
          yield* Effect.sleep(pause)
        }
      })

      return BillingRun.of({ plan, dispatch })
    })
  )
}
