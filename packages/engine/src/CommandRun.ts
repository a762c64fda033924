/**
 * A run that a command has in hand: dispatched in its process, and seen in the register by whoever looks there. What a person says
 * there is done within `PURSER_RUN_CONTROL_POLL`: held, it sends nothing more until it is resumed; canceled, nothing more at all, and what
 * was sent is settled.
 *
 * It ends with its process, and no runner takes it up. The same command goes on with its rows as another run, and says so of this one.
 */
import { goneOnWith, isRunOver, type LedgerError, RunLedger, type RunRecord, RunRegistry, type RunState, type RunStateTotal } from "@purser/core"
import { Cause, Clock, type Config, Context, Duration, Effect, Exit, Layer, Schedule, Schema } from "effect"
import { BillingRun } from "./BillingRun.ts"
import type { DispatchError } from "./DispatchError.ts"
import { followStop } from "./internal/runControl.ts"
import { controlEvery, runPatience } from "./internal/runSettings.ts"
import { inWork } from "./internal/runSteps.ts"
import type { DispatchInput } from "./RunDispatch.ts"
import { RunError, SourceInHand } from "./RunError.ts"
import { foregroundDefinition } from "./RunWorkflow.ts"

/** The run that is to be in hand. */
export interface CommandRunWish {
  readonly runId: string
  /** What it reads, for people and for the same command later. */
  readonly source: string
  readonly actor: string
  /** The name under which this process is in the workers' book. */
  readonly worker: string
  /** What it reads, in short: of two commands with one digest, the second is refused while the first lives. Without one nobody is. */
  readonly digest?: string | undefined
  readonly process?: CommandProcess
  /** Whether a process is known to be gone, also before it is missed in the workers' book. */
  readonly isGone?: (process: CommandProcess) => Effect.Effect<boolean>
}

/** Where a command runs. */
export interface CommandProcess {
  readonly host: string
  readonly pid: number
}

/** The end of a dispatch: how the rows stand, and who ended it before its end, if anybody did. */
export interface CommandRunEnd {
  readonly summary: ReadonlyArray<RunStateTotal>
  readonly canceled: string | null
}

/** What the command is told meanwhile. */
export type CommandRunNews = "held" | "goes on" | "canceled"

const notOver: ReadonlyArray<RunState> = ["running", "paused", "canceling"]
const goneOn = (runId: string) => `${goneOnWith}${runId}`
/** Whether another run has gone on with what an interrupted one had left. */
export const isGoneOn = ({ detail }: Pick<RunRecord, "detail">): boolean => detail?.startsWith(goneOnWith) === true
const isProcess = Schema.is(Schema.Struct({ host: Schema.String, pid: Schema.Int }))
const digestOf = ({ params }: RunRecord) => typeof params === "object" && params !== null && "digest" in params ? params.digest : undefined
const sourceOf = ({ params }: RunRecord) => typeof params === "object" && params !== null && "file" in params ? params.file : undefined

/** Runs of this process. Every method needs nothing. */
export class CommandRun extends Context.Service<CommandRun, {
  /** Fails where another command that lives has the same input in hand, so that nobody is asked about totals in vain. */
  readonly free: (wish: CommandRunWish) => Effect.Effect<void, LedgerError | RunError>
  /**
   * Registers the run for as long as the work lasts, and says how it ended: `finished`, `canceled`, or `interrupted` where the work was
   * cut short. Runs of the same source that were interrupted are said to be gone on with. A register that is away is not the work's affair.
   * Where another command that lives has the same input in hand, it fails with that, and the work is not begun.
   */
  readonly registered: <A, E, R>(wish: CommandRunWish, work: Effect.Effect<A, E, R>, hasEnded: (error: E) => boolean) => Effect.Effect<A, E | LedgerError | RunError, R>
  /** Dispatches until all is settled or nothing moves, holds, and cancels. `tell` is what the person at the command is told. */
  readonly dispatch: (input: Omit<DispatchInput, "stop">, tell: (news: CommandRunNews, run: RunRecord) => Effect.Effect<void>) => Effect.Effect<CommandRunEnd, LedgerError | DispatchError>
}>()("@purser/engine/CommandRun") {
  /** Over the register, the run book and the dispatch. */
  static readonly layer: Layer.Layer<CommandRun, Config.ConfigError, RunRegistry | RunLedger | BillingRun> = Layer.effect(
    CommandRun,
    Effect.gen(function*() {
      const registry = yield* RunRegistry
      const book = yield* RunLedger
      const runs = yield* BillingRun
      const every = yield* controlEvery
      const patience = Duration.toMillis(yield* runPatience)

      const goOnWith = Effect.fnUntraced(function*({ actor, runId, source }: CommandRunWish) {
        const interrupted = yield* registry.list({ states: ["interrupted"], limit: 1000 })
        const before = interrupted.filter((run) => run.definition === foregroundDefinition && run.runId !== runId && sourceOf(run) === source && !isGoneOn(run))
        yield* Effect.forEach(before, (run) =>
          registry.change({ runId: run.runId, from: [...notOver, "interrupted"], to: "interrupted", actor, detail: goneOn(runId) }), { discard: true })
      })

      /** Whether the run is another command's that lives. One that was killed a moment ago is not missed yet, and is said to be interrupted here. */
      const isTaken = Effect.fnUntraced(function*({ actor, isGone }: CommandRunWish, { params, runId }: RunRecord) {
        if (isGone === undefined || !isProcess(params) || !(yield* isGone(params))) return true
        yield* registry.change({ runId, from: notOver, to: "interrupted", actor, detail: "its process is gone" })
        return false
      })
      const inHand = ({ source }: CommandRunWish, { runId, runner }: RunRecord) => new RunError({ reason: new SourceInHand({ source, run: runId, runner }) })

      const free = Effect.fn("CommandRun.free")(function*(wish: CommandRunWish) {
        if (wish.digest === undefined) return
        const running = yield* registry.list({ states: notOver, limit: 1000 })
        const other = running.find((run) => run.definition === foregroundDefinition && run.lostSinceMs === null && digestOf(run) === wish.digest)
        if (other !== undefined && (yield* isTaken(wish, other))) return yield* inHand(wish, other)
      })

      const register = Effect.fnUntraced(function*(wish: CommandRunWish) {
        const { actor, digest, process, runId, source, worker } = wish
        for (;;) {
          const { isNew, run } = yield* registry.register({
            runId, name: runId, state: "running", definition: foregroundDefinition, params: { file: source, ...process }, options: null, actor, runner: worker,
            ...(digest === undefined ? {} : { digest })
          })
          if (isNew) return
          if (yield* isTaken(wish, run)) return yield* inHand(wish, run)
        }
      })

      const ended = (exit: Exit.Exit<unknown, unknown>, run: RunRecord | undefined, hasEnded: (error: unknown) => boolean): readonly [RunState, string | null] => {
        if (Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)) return ["interrupted", "stopped"]
        if (Exit.isFailure(exit)) {
          const error = Cause.squash(exit.cause)
          if (!hasEnded(error)) return ["interrupted", error instanceof Error ? error.message : String(error)]
        }
        return run?.state === "canceling" ? ["canceled", run.detail] : ["finished", null]
      }

      /** The run as people want it, asked for until the register answers. */
      const asked = (runId: string) => Effect.retry(registry.find(runId), { while: ({ isRetryable }) => isRetryable, schedule: Schedule.spaced(every) })
      const isHeld = (run: RunRecord | undefined) => run?.state === "paused"
      const isEnded = (run: RunRecord | undefined) => run === undefined || run.state === "canceling" || isRunOver(run.state)

      /** What was sent comes to its end, or to where nothing moves. */
      const drain = Effect.fnUntraced(function*(runId: string) {
        const begunMs = yield* Clock.currentTimeMillis
        for (;;) {
          const summary = yield* book.summary(runId)
          if (inWork(summary) === 0 || (yield* Clock.currentTimeMillis) - begunMs >= patience) {
            yield* book.finish(runId, "stopped")
            return summary
          }
          yield* Effect.sleep(every)
        }
      })

      return CommandRun.of({
        free,
        registered: (wish, work, hasEnded) =>
          Effect.gen(function*() {
            const { actor, runId } = wish
            yield* register(wish)
            yield* Effect.ignore(goOnWith(wish))
            return yield* Effect.onExit(work, (exit) =>
              Effect.gen(function*() {
                yield* registry.note(runId, { counted: yield* book.summary(runId) })
                const [to, detail] = ended(exit, yield* registry.find(runId), hasEnded as (error: unknown) => boolean)
                yield* registry.change({ runId, from: notOver, to, actor, detail })
              }).pipe(Effect.ignore))
          }),
        dispatch: Effect.fn("CommandRun.dispatch")(function*(input, tell) {
          const { runId } = input
          for (;;) {
            const sent = yield* Effect.scoped(Effect.gen(function*() {
              const stop = yield* Effect.provideService(followStop(runId, every), RunRegistry, registry)
              const summary = stop.isStopped() ? yield* book.summary(runId) : yield* runs.dispatch({ ...input, stop })
              return { summary, stopped: stop.isStopped() }
            }))
            if (!sent.stopped) return { summary: sent.summary, canceled: null }
            let run = yield* asked(runId)
            if (isHeld(run)) {
              yield* tell("held", run!)
              run = yield* Effect.repeat(asked(runId), { while: isHeld, schedule: Schedule.spaced(every) })
              if (!isEnded(run)) yield* tell("goes on", run!)
            }
            if (isEnded(run)) {
              if (run !== undefined) yield* tell("canceled", run)
              return { summary: yield* drain(runId), canceled: run?.detail ?? "" }
            }
          }
        })
      })
    })
  )
}
