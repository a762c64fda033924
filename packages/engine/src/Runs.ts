/**
 * What one may do with billing runs from anywhere: start, watch, hold, resume, cancel, and send late rows after them. It acts on
 * the register and wakes the workflow; whoever has the run, a runner or a command, does the rest.
 */
import { isRunOver, type LedgerError, RunLedger, type RunRecord, RunRegistry, type RunState, type RunStateTotal, standingOf } from "@purser/core"
import { Clock, Context, type Duration, Effect, Layer, Random, Schedule, Schema, Stream } from "effect"
import { WorkflowEngine } from "effect/workflow"
import { RunError, RunStateRefused, UnknownRun } from "./RunError.ts"
import { RunOptions } from "./RunReport.ts"
import { foregroundDefinition, stagedDefinition, startRun, wakeRun } from "./RunWorkflow.ts"

/** A run that is wished for. A name is given once: starting it again answers the run that has it. */
export interface RunWish {
  readonly name: string
  readonly definition: string
  /** What the definition is told; JSON. */
  readonly params: unknown
  readonly options?: Partial<typeof RunOptions.Encoded>
  readonly actor: string
  /** The id under which rows were planned already. */
  readonly plannedAs?: string
}

/** A run with its rows counted now. */
export interface RunView {
  readonly run: RunRecord
  readonly counted: ReadonlyArray<RunStateTotal>
}

/** What one may do with a run from anywhere. */
export type RunAct = "pause" | "resume" | "cancel"

/** What one may do with this run as it stands; a command does it as a runner does. */
export const actsOn = (run: Pick<RunRecord, "state" | "lostSinceMs">): ReadonlyArray<RunAct> => {
  switch (run.lostSinceMs === null ? run.state : "lost") {
    case "waiting":
    case "planned":
    case "running":
      return ["pause", "cancel"]
    case "paused":
      return ["resume", "cancel"]
    case "lost":
      return ["cancel"]
    default:
      return []
  }
}

const unknown = (run: string) => new RunError({ reason: new UnknownRun({ run }) })
const decodeOptions = Schema.decodeUnknownEffect(Schema.toCodecJson(RunOptions))
const encodeOptions = Schema.encodeEffect(Schema.toCodecJson(RunOptions))

const sameCounts = (a: ReadonlyArray<RunStateTotal>, b: ReadonlyArray<RunStateTotal>) =>
  a.length === b.length && a.every(({ currency, rows, state }, index) => b[index]!.currency === currency && b[index]!.rows === rows && b[index]!.state === state)

/** An id that sorts by time. */
export const newRunId = Effect.gen(function*() {
  const at = new Date(yield* Clock.currentTimeMillis).toISOString().replaceAll(/[-:]/g, "").replace(/\..*/, "Z")
  return `${at}-${(yield* Random.nextIntBetween(0, 2 ** 32)).toString(16).padStart(8, "0")}`
})

/** The runs of a database. */
export class Runs extends Context.Service<Runs, {
  /** Starts a run, or answers the one that has its name: two triggers start one run, and a run that is over stays over. */
  readonly start: (wish: RunWish) => Effect.Effect<{ readonly run: RunRecord; readonly isNew: boolean }, LedgerError | Schema.SchemaError>
  /**
   * Reads the source of a run that is over once more, and charges the rows that it did not have; where it has one of them with other terms,
   * the round fails (`TermsChanged`). A run without a source of its own
   * goes on with what was planned for it and not charged; without any of that it is refused, and so is another definition than its own.
   */
  readonly extend: (input: { readonly run: string; readonly definition?: string; readonly params?: unknown; readonly actor: string }) => Effect.Effect<RunRecord, LedgerError | RunError>
  /** Sends nothing more until it is resumed; what was sent is settled. */
  readonly pause: (run: string, actor: string, reason: string) => Effect.Effect<RunRecord, LedgerError | RunError>
  /** Goes on with a run that was paused. */
  readonly resume: (run: string, actor: string) => Effect.Effect<RunRecord, LedgerError | RunError>
  /** Sends nothing more, ever; what was sent is settled, the rest is not started. */
  readonly cancel: (run: string, actor: string, reason: string) => Effect.Effect<RunRecord, LedgerError | RunError>
  /** A run, with its rows as they are now. */
  readonly view: (run: string) => Effect.Effect<RunView, LedgerError | RunError>
  /** A run as it changes, until it is over. */
  readonly watch: (run: string, every?: Duration.Input) => Stream.Stream<RunView, LedgerError | RunError>
}>()("@purser/engine/Runs") {
  /** Over the register, the run book and the engine. */
  static readonly layer: Layer.Layer<Runs, never, RunRegistry | RunLedger | WorkflowEngine.WorkflowEngine> = Layer.effect(
    Runs,
    Effect.gen(function*() {
      const registry = yield* RunRegistry
      const book = yield* RunLedger
      const engine = yield* WorkflowEngine.WorkflowEngine
      const onEngine = Effect.provideService(WorkflowEngine.WorkflowEngine, engine)

      /** Joins an execution that is there. */
      const execute = (run: RunRecord) => onEngine(startRun(run))
      const found = Effect.fnUntraced(function*(nameOrId: string) {
        return (yield* registry.find(nameOrId)) ?? (yield* unknown(nameOrId))
      })
      const change = Effect.fnUntraced(function*(
        nameOrId: string,
        act: { readonly from: ReadonlyArray<RunState>; readonly to: RunState; readonly actor: string; readonly detail?: string | null; readonly word: string }
      ) {
        const run = yield* found(nameOrId)
        const isLost = run.lostSinceMs !== null
        // Nobody is there who would read it; a run that is canceled so has nothing in work that a sweep does not settle.
        if (isLost && act.to !== "canceling") return yield* new RunError({ reason: new RunStateRefused({ run: run.name, state: standingOf(run), act: act.word }) })
        const to = isLost ? "canceled" : act.to
        // Said again after the answer was lost: what may be missing is the wake.
        const changed = run.state === to ? run : yield* registry.change({ ...act, runId: run.runId, to, from: isLost ? [...act.from, "canceling"] : act.from })
        if (changed === undefined) {
          return yield* new RunError({ reason: new RunStateRefused({ run: run.name, state: (yield* found(nameOrId)).state, act: act.word }) })
        }
        yield* onEngine(wakeRun(changed))
        return changed
      })
      const view = Effect.fnUntraced(function*(nameOrId: string) {
        const run = yield* found(nameOrId)
        // What an interrupted run had sent is settled by others.
        const isCounted = isRunOver(run.state) && run.state !== "interrupted"
        return { run, counted: isCounted ? run.counted : yield* book.summary(run.runId) }
      })

      return Runs.of({
        start: Effect.fn("Runs.start")(function*({ actor, definition, name, options, params, plannedAs }) {
          const answer = yield* registry.register({
            runId: plannedAs ?? (yield* newRunId), name, definition, params, actor, state: plannedAs === undefined ? "waiting" : "planned",
            options: yield* encodeOptions(yield* decodeOptions(options ?? {}))
          })
          if (!isRunOver(answer.run.state)) yield* execute(answer.run)
          return answer
        }),
        extend: Effect.fn("Runs.extend")(function*({ actor, definition, params, run: nameOrId }) {
          const run = yield* found(nameOrId)
          const refused = (state: string) => new RunError({ reason: new RunStateRefused({ run: run.name, state, act: "extended" }) })
          if (run.definition === foregroundDefinition) return yield* refused(`in the hands of ${run.actor}`)
          if (run.definition === stagedDefinition && (definition !== undefined || params !== undefined)) {
            return yield* refused("of rows that were planned where it was handed over, and reads no source")
          }
          if (definition !== undefined && definition !== run.definition) return yield* refused(`of the definition "${run.definition}"`)
          if (run.definition === stagedDefinition && isRunOver(run.state) && (yield* book.pending(run.runId, 0, 1)).length === 0) {
            return yield* refused(`${run.state}, with no row left to charge and no source to read again`)
          }
          const extended = yield* registry.extend({ runId: run.runId, params: params ?? run.params, actor })
          if (extended === undefined) return yield* refused(run.state)
          yield* execute(extended)
          return extended
        }),
        pause: (run, actor, reason) => change(run, { from: ["waiting", "planned", "running"], to: "paused", actor, detail: reason, word: "paused" }),
        resume: (run, actor) => change(run, { from: ["paused"], to: "running", actor, detail: null, word: "resumed" }),
        cancel: (run, actor, reason) => change(run, { from: ["waiting", "planned", "running", "paused"], to: "canceling", actor, detail: reason, word: "canceled" }),
        view,
        watch: (run, every = "1 second") =>
          Stream.fromEffectSchedule(view(run), Schedule.spaced(every)).pipe(
            Stream.takeUntil(({ run }) => isRunOver(standingOf(run))),
            Stream.changesWith((a, b) => standingOf(a.run) === standingOf(b.run) && a.run.step === b.run.step && sameCounts(a.counted, b.counted))
          )
      })
    })
  )
}
