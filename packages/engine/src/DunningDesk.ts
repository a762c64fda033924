/**
 * The desk of dunning: opens cases for new declines where that is wished for, starts a workflow for each case, and wakes those
 * for which something has changed. Any number of processes may have one; a case has one workflow, whoever starts it.
 *
 * It asks nobody for money. What it finds stands in the store, so that it may be stopped at any time.
 */
import { DunningBook, type LedgerError } from "@purser/core"
import { Config, Context, Duration, Effect, Layer } from "effect"
import { WorkflowEngine } from "effect/workflow"
import { Dunning, wakeDunning } from "./Dunning.ts"

/** What one pass did; `passed` declines were too old, or followed up already. */
export interface DeskPass {
  readonly opened: number
  readonly passed: number
  readonly started: number
  readonly woken: number
}

const options = Config.all({
  opens: Config.Literals(["on", "off"], "PURSER_DUNNING").pipe(Config.withDefault("off" as const)),
  maxAge: Config.Duration("PURSER_DUNNING_MAX_AGE").pipe(Config.withDefault(Duration.days(7))),
  poll: Config.Duration("PURSER_DUNNING_POLL").pipe(Config.withDefault(Duration.seconds(5)))
})

const page = 200
const atOnce = 16
const by = { actor: "dunning", reason: "declined" }

/** The desk. Every method needs nothing. */
export class DunningDesk extends Context.Service<DunningDesk, {
  /** Opens, starts and wakes what is due now. */
  readonly tend: Effect.Effect<DeskPass, LedgerError>
  /**
   * Starts the workflows of all running cases once more. An engine that has them is not disturbed; one that forgot them, as the
   * one in memory does with its process, has them again.
   */
  readonly restart: Effect.Effect<number, LedgerError>
  /** `restart`, and `tend` every `PURSER_DUNNING_POLL`, for ever; a failure is logged and tried again. */
  readonly run: Effect.Effect<never>
}>()("@purser/engine/DunningDesk") {
  /** Over the engine of the app, with which the workflow is registered. */
  static readonly layer: Layer.Layer<DunningDesk, Config.ConfigError, DunningBook | WorkflowEngine.WorkflowEngine> = Layer.effect(
    DunningDesk,
    Effect.gen(function*() {
      const book = yield* DunningBook
      const engine = yield* WorkflowEngine.WorkflowEngine
      const { maxAge, opens, poll } = yield* options
      const onEngine = Effect.provideService(WorkflowEngine.WorkflowEngine, engine)
      const execute = (caseId: string) => Effect.asVoid(onEngine(Dunning.execute({ caseId }, { discard: true })))

      const openAll = Effect.gen(function*() {
        const sum = { opened: 0, passed: 0 }
        for (;;) {
          const { opened, passed } = yield* book.openDue({ maxAgeMs: Duration.toMillis(maxAge), limit: page, ...by })
          sum.opened += opened
          sum.passed += passed
          if (opened + passed < page) return sum
        }
      })

      const startAll = Effect.gen(function*() {
        let started = 0
        for (;;) {
          const due = yield* book.toStart(page)
          yield* Effect.forEach(due, (caseId) => Effect.andThen(execute(caseId), book.started(caseId)), { concurrency: atOnce, discard: true })
          started += due.length
          if (due.length < page) return started
        }
      })

      /** Does something for each of a list that is read in pages, and answers how many there were. */
      const throughout = Effect.fnUntraced(function*<A>(
        read: (afterId: string, limit: number) => Effect.Effect<ReadonlyArray<A>, LedgerError>,
        idOf: (one: A) => string,
        act: (one: A) => Effect.Effect<void>
      ) {
        let count = 0
        let after = ""
        for (;;) {
          const found = yield* read(after, page)
          yield* Effect.forEach(found, act, { concurrency: atOnce, discard: true })
          count += found.length
          if (found.length < page) return count
          after = idOf(found[found.length - 1]!)
        }
      })

      const tend = Effect.gen(function*() {
        const found = opens === "on" ? yield* openAll : { opened: 0, passed: 0 }
        const started = yield* startAll
        const woken = yield* throughout(book.moved, ({ caseId }) => caseId, ({ caseId, step }) => onEngine(wakeDunning(caseId, step)))
        return { ...found, started, woken }
      }).pipe(Effect.withSpan("DunningDesk.tend"))

      const restart = throughout(book.running, (caseId) => caseId, execute).pipe(Effect.withSpan("DunningDesk.restart"))

      const safely = <A>(pass: Effect.Effect<A, LedgerError>) =>
        pass.pipe(
          Effect.catch((error) => Effect.logWarning(`dunning waits, the next pass tries again: ${error.message}`)),
          Effect.catchDefect((defect) => Effect.logError("a pass over dunning cases failed inside; the next one tries again", defect))
        )

      return DunningDesk.of({
        tend,
        restart,
        // Of many cases the restart takes a while, for which nobody has to wait.
        run: Effect.andThen(Effect.forkChild(safely(restart)), Effect.forever(Effect.andThen(safely(tend), Effect.sleep(poll))))
      })
    })
  )
}
