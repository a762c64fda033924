/**
 * A billing run as a durable workflow: plan, stages, dispatch in chunks, settle, stages after the charge, reconcile, close,
 * report. One execution for each round of a run, and a step for each chunk; never one for a charge.
 *
 * It holds no truth about charges: the ledger does. Every step may run again, on another machine, after it was cut short, and a
 * frozen runner that wakes up beside its successor makes no second charge. What a person decides is read from the register.
 */
import { commandDefinition, type RunLedger, type RunRecord, type RunRegistry, type RunStash, type SpendCap, SpendCapError } from "@purser/core"
import { Cause, Config, Duration, Effect, Layer, Option, Schema, Semaphore } from "effect"
import { ClusterSchema } from "effect/cluster"
import { Activity, DurableClock, DurableDeferred, Workflow, type WorkflowEngine } from "effect/workflow"
import type { BillingRun } from "./BillingRun.ts"
import { planRun, stashSource } from "./internal/runPlan.ts"
import { surely } from "./internal/runControl.ts"
import { controlEvery } from "./internal/runSettings.ts"
import { makeRunSteps, type Verdict } from "./internal/runSteps.ts"
import { PipelineOptions } from "./PipelineOptions.ts"
import type { ClosedDefinition } from "./RunDefinition.ts"
import { RunDefinitions } from "./RunDefinitions.ts"
import { RunError, UnknownDefinition, UnknownRun } from "./RunError.ts"
import { RunOptions, RunReport } from "./RunReport.ts"

/** Why a run fails before anything is charged. */
export const RunFailure = Schema.Union([RunError, SpendCapError])
export type RunFailure = typeof RunFailure.Type

const about = {
  payload: { runId: Schema.NonEmptyString, round: Schema.Int },
  success: RunReport,
  error: RunFailure,
  idempotencyKey: ({ round, runId }: { readonly round: number; readonly runId: string }) => `${runId}/${round}`
} as const

/** The workflow of runs whose rows were planned already. Its identity is the run and its round: starting it again joins it. */
export const RunWorkflow = Workflow.make("purser/BillingRun", about)

/** The shards of processes that know definitions. A program that runs planned rows beside its own work has none of them. */
export const definitionsGroup = "definitions"

/** The same for runs whose rows a definition makes: only who knows definitions may have them. */
export const DefinedRunWorkflow = Workflow.make("purser/DefinedBillingRun", about).annotate(ClusterSchema.ShardGroup, () => definitionsGroup)

/** The definition of runs whose rows were planned by whoever handed them over. */
export const stagedDefinition = "staged"

type Execution = Pick<RunRecord, "runId" | "round" | "definition">

/** Starts a run's workflow and answers its report; one that runs, or has run, is joined. */
export const executeRun = ({ definition, round, runId }: Execution): Effect.Effect<RunReport, RunFailure, WorkflowEngine.WorkflowEngine> =>
  definition === stagedDefinition ? RunWorkflow.execute({ runId, round }) : DefinedRunWorkflow.execute({ runId, round })

/** The same, without waiting. */
export const startRun = ({ definition, round, runId }: Execution): Effect.Effect<void, never, WorkflowEngine.WorkflowEngine> =>
  Effect.asVoid(definition === stagedDefinition
    ? RunWorkflow.execute({ runId, round }, { discard: true })
    : DefinedRunWorkflow.execute({ runId, round }, { discard: true }))

/**
 * Runs a suspended workflow anew from what it has kept: the sign that it may go on may have come to a runner that stood still, or to none. One
 * that rightly waits suspends again, and one that is at work is left alone.
 */
export const resumeRun = ({ definition, round, runId }: Execution): Effect.Effect<void, never, WorkflowEngine.WorkflowEngine> => {
  const execution = { runId, round }
  return definition === stagedDefinition
    ? Effect.flatMap(RunWorkflow.executionId(execution), (id) => RunWorkflow.resume(id))
    : Effect.flatMap(DefinedRunWorkflow.executionId(execution), (id) => DefinedRunWorkflow.resume(id))
}

/** The definition of runs that a command has in hand by itself: no runner has them in work, and the command does what people say in the register. */
export const foregroundDefinition = commandDefinition

/** Steps at which a run waits to be woken: on hold, or until open charges are due. */
const parkedAt = /^(?:hold|wait)\//
/** Whether it waits there, by the register. */
export const isParked = ({ step }: Pick<RunRecord, "step">): boolean => step !== null && parkedAt.test(step)
const wakeOf = (place: string) => DurableDeferred.make(`wake/${place}`)
/** A pause by its number. The step in the register may be one that a frozen runner noted when it woke up, long after another had taken the run on. */
const pauseOf = (pauses: number) => `pause/${pauses}`

/** Wakes a run that is parked; one that is not parked looks at the register by itself. */
export const wakeRun = Effect.fnUntraced(function*(
  { definition, pauses, round, runId, state, step }: Pick<RunRecord, "runId" | "round" | "definition" | "state" | "step" | "pauses">
): Effect.fn.Return<void, never, WorkflowEngine.WorkflowEngine> {
  const places = [...(state === "paused" || pauses === 0 ? [] : [pauseOf(pauses)]), ...(isParked({ step }) ? [step!] : [])]
  yield* Effect.forEach(places, Effect.fnUntraced(function*(place) {
    const deferred = wakeOf(place)
    const token = yield* definition === stagedDefinition
      ? DurableDeferred.tokenFromPayload(deferred, { workflow: RunWorkflow, payload: { runId, round } })
      : DurableDeferred.tokenFromPayload(deferred, { workflow: DefinedRunWorkflow, payload: { runId, round } })
    yield* DurableDeferred.succeed(deferred, { token, value: undefined })
  }), { discard: true })
})

const settings = Config.all({
  controlEvery,
  giveUp: Config.Duration("PURSER_RUN_GIVE_UP").pipe(Config.withDefault(Duration.days(1))),
  dunning: Config.Literals(["on", "off"], "PURSER_DUNNING").pipe(Config.withDefault("off" as const))
})

const firstWaitMs = 15_000
const longestWaitMs = 600_000
const waitMs = (waits: number) => Math.min(longestWaitMs, firstWaitMs * 2 ** Math.min(waits, 10))

/** Chunks that are dispatched side by side, so that the slowest charge of one does not hold up the next. */
const chunksAtOnce = 2

const Begun = Schema.Struct({
  name: Schema.String, definition: Schema.String, params: Schema.Unknown, options: RunOptions,
  planned: Schema.Boolean, canceled: Schema.Boolean
})
const Range = Schema.Struct({ afterLine: Schema.Int, throughLine: Schema.Int })
/**
 * The lines of a round. Rows that an earlier round left are dispatched with it: they begin after `openAfter`, and those among them that
 * nobody had settled by then are `left`.
 */
const Lines = Schema.Struct({
  ...Range.fields, page: Schema.Int, openAfter: Schema.optionalKey(Schema.Int), left: Schema.optionalKey(Schema.Array(Range))
})
/** Why nothing more is to be sent: the workers answer from another ledger. */
const Elsewhere = Schema.Struct({ elsewhere: Schema.String })
type Elsewhere = typeof Elsewhere.Type
/** Whether a chunk was stopped. */
const Sent = Schema.Union([Schema.Boolean, Elsewhere])
const Settled = Schema.Struct({ open: Schema.Int, stopped: Schema.Boolean, elsewhere: Schema.optionalKey(Schema.String) })
const Reconciled = Schema.Struct({ differences: Schema.NullOr(Schema.Int), problem: Schema.NullOr(Schema.String) })
const VerdictOf = Schema.Literals(["go", "hold", "cancel"])
/** With the number of the pause that holds it. */
const HeldOf = Schema.Union([VerdictOf, Schema.Struct({ pauses: Schema.Int })])

const rangesOf = ({ afterLine, page, throughLine }: typeof Range.Type & { readonly page: number }) =>
  Array.from({ length: Math.max(0, Math.ceil((throughLine - afterLine) / page)) }, (_, index) => ({
    index, afterLine: afterLine + index * page, throughLine: Math.min(throughLine, afterLine + (index + 1) * page)
  }))

const decodeOptions = Schema.decodeUnknownEffect(Schema.toCodecJson(RunOptions))

const make = Effect.gen(function*() {
  const { controlEvery, dunning, giveUp } = yield* settings
  const definitions = yield* RunDefinitions
  const given = yield* Effect.serviceOption(PipelineOptions)
  const runner = (Option.isSome(given) ? given.value : yield* PipelineOptions.fromConfig).worker
  const steps = yield* makeRunSteps(runner, { controlEvery, opensCases: dunning === "on" })

  return Effect.fnUntraced(function*({ round, runId }: typeof RunWorkflow.payloadSchema.Type) {
    const step = <A, I, E extends RunFailure = never>(name: string, success: Schema.Codec<A, I>, execute: Effect.Effect<A, E>) =>
      Activity.make({ name, success, error: RunFailure, execute: steps.noted(runId, name, execute) })
    /** For steps that can only succeed, however long that takes. */
    const certain = <A, I>(name: string, success: Schema.Codec<A, I>, execute: Effect.Effect<A>) => Effect.orDie(step(name, success, execute))

    const begun = yield* step("begin", Begun, Effect.gen(function*() {
      const run = yield* steps.find(runId)
      if (run === undefined) return yield* new RunError({ reason: new UnknownRun({ run: runId }) })
      const { definition, name, params, state } = run
      const planned = definition === stagedDefinition || (round === 1 && (yield* steps.isPlanned(runId)))
      return { name, definition, params, options: yield* Effect.orDie(decodeOptions(run.options)), planned, canceled: state === "canceling" }
    }))
    const { name, options } = begun
    const definition = definitions.find(begun.definition)
    const aboutRun = { runId, round, name }
    const contextOf = (stage: string, chunk: number) =>
      Effect.map(Activity.idempotencyKey(`${stage}/${chunk}`), (idempotencyKey) => ({ ...aboutRun, chunk, idempotencyKey, attempt: 1 }))

    /** Waits as long as a person has the run on hold. */
    const held = Effect.fnUntraced(function*(at: string) {
      for (let look = 0;; look++) {
        const place = `hold/${at}/${look}`
        const held = yield* certain(place, HeldOf, steps.held(runId))
        if (held === "go" || held === "cancel") return held
        yield* DurableDeferred.await(wakeOf(held === "hold" ? place : pauseOf(held.pauses)))
      }
    })

    /** Waits until open charges may be due, a person decides something, or for long enough: then it answers false. */
    const waited = Effect.fnUntraced(function*(at: string, waits: number) {
      let spentMs = 0
      for (let past = 0; past < waits; past++) spentMs += waitMs(past)
      if (spentMs >= Duration.toMillis(giveUp)) return false
      const place = `wait/${at}/${waits}`
      const verdict = yield* certain(place, VerdictOf, steps.verdict(runId))
      if (verdict === "go" || at === "drain") {
        yield* DurableDeferred.raceAll({
          name: place, success: Schema.Void, error: Schema.Never,
          effects: [
            DurableClock.sleep({ name: `timer/${place}`, duration: Duration.millis(waitMs(waits)), inMemoryThreshold: Duration.zero }),
            DurableDeferred.await(wakeOf(place))
          ]
        })
      }
      return true
    })

    const before = Effect.fnUntraced(function*(closed: ClosedDefinition) {
      const chunks = yield* step("source", Schema.NullOr(Schema.Int), stashSource(steps.parts, { runId, name, round, params: begun.params, definition: closed }))
      if (chunks === null) return null
      const { stash } = steps.parts
      yield* Effect.forEach(Array.from({ length: chunks }, (_, chunk) => chunk), (chunk) =>
        Effect.forEach(closed.before, (stage, index) =>
          Effect.gen(function*() {
            const place = `before/${index}/${stage.name}/${chunk}`
            const context = yield* contextOf(place, chunk)
            yield* step(place, Schema.Void, Effect.gen(function*() {
              const body = yield* surely(stash.get({ runId, round, stage: index }, chunk))
              if (body === undefined) return yield* Effect.die(new Error(`Bug: chunk ${chunk} of ${runId} is not in the stash`))
              yield* surely(stash.put({ runId, round, stage: index + 1 }, chunk, yield* stage.run(body, context)))
            }))
          }), { discard: true }), { concurrency: chunksAtOnce, discard: true })
      return chunks
    })

    /** The lines of this round, or null when it was canceled before they were obligations. */
    const plan = Effect.gen(function*() {
      const { pageSize } = steps.parts.runs
      const withOpen = (lines: typeof Lines.Type) =>
        round === 1 ? Effect.succeed(lines) : Effect.map(steps.left(runId, lines.afterLine), (left) => ({ ...lines, openAfter: left[0]?.afterLine ?? lines.afterLine, left }))
      const afterLine = round === 1 ? 0 : yield* certain("lines", Schema.Int, steps.lastLine(runId))
      if (begun.planned) {
        return yield* certain("plan", Lines, Effect.flatMap(steps.lastLine(runId), (throughLine) => withOpen({ afterLine, throughLine, page: pageSize })))
      }
      if (definition === undefined) return yield* new RunError({ reason: new UnknownDefinition({ definition: begun.definition }) })
      const chunks = definition.source._tag === "Items" ? yield* before(definition) : 0
      if (chunks === null) return null
      return yield* step("plan", Schema.NullOr(Lines), Effect.gen(function*() {
        const { name, options, params } = begun
        const lines = yield* planRun(steps.parts, { runId, name, round, afterLine, params, options, definition, chunks })
        if (lines === null) return null
        yield* steps.planned(runId)
        return yield* withOpen({ ...lines, page: pageSize })
      }))
    })

    /** Sends every chunk once; a chunk that a person stopped is sent again when the run goes on. */
    const dispatch = Effect.fnUntraced(function*(lines: typeof Lines.Type): Effect.fn.Return<Verdict | Elsewhere, never, WorkflowEngine.WorkflowEngine | WorkflowEngine.WorkflowInstance> {
      const gate = yield* Semaphore.make(options.concurrency)
      let left = rangesOf({ ...lines, afterLine: Math.min(lines.afterLine, lines.openAfter ?? lines.afterLine) })
      for (let pass = 0;; pass++) {
        const verdict = yield* held(`dispatch/${pass}`)
        if (verdict === "cancel" || left.length === 0) return verdict
        let isStopped = false
        const stopped = yield* Effect.forEach(left, (range) =>
          Effect.suspend(() => isStopped ? Effect.succeed(true) : certain(`dispatch/${pass}/${range.index}`, Sent, steps.lines(runId, range, gate))).pipe(
            Effect.tap((stop) => Effect.sync(() => {
              isStopped ||= stop !== false
            }))
          ), { concurrency: chunksAtOnce })
        const elsewhere = stopped.find((stop) => typeof stop === "object")
        if (elsewhere !== undefined) return elsewhere
        left = left.filter((_, index) => stopped[index] === true)
        if (left.length === 0) return "go"
      }
    })

    /** Sees to what stays open, until nothing is or patience ends. */
    const settle = Effect.gen(function*() {
      for (let look = 0, waits = 0;; look++) {
        const { elsewhere, open, stopped } = yield* certain(`settle/${look}`, Settled, steps.settle(runId, options.concurrency))
        if (elsewhere !== undefined) return { elsewhere }
        if (stopped) {
          if ((yield* held(`settle/${look}`)) === "cancel") return "cancel" as const
        } else if (open === 0 || !(yield* waited("settle", waits++))) return "go" as const
      }
    })

    /** After a cancellation, until workers hold nothing of the run. */
    const drain = Effect.gen(function*() {
      for (let look = 0;; look++) {
        const inWork = yield* certain(`drain/${look}`, Schema.Int, steps.drain(runId))
        if (inWork === 0 || !(yield* waited("drain", look))) return
      }
    })

    const after = Effect.fnUntraced(function*(lines: typeof Lines.Type) {
      // What an earlier round left comes to these stages in the round that settled it, and no other row of that round does again.
      const left = (lines.left ?? []).flatMap((range) => rangesOf({ ...range, page: lines.page })).map((range, index) => ({ ...range, index: `left/${index}` }))
      const ranges = [...left, ...rangesOf(lines)]
      const problems = yield* Effect.forEach(definition?.after ?? [], (stage, index) =>
        Effect.forEach(ranges, (range, chunk) =>
          Effect.gen(function*() {
            const place = `after/${index}/${stage.name}/${range.index}`
            const context = yield* contextOf(place, chunk)
            return yield* certain(place, Schema.NullOr(Schema.String), Effect.flatMap(steps.rows(runId, range), ({ inWork, settled }) => {
              const unseen = inWork === 0 ? null : `stage "${stage.name}" has not seen ${inWork} ${inWork === 1 ? "row" : "rows"} that a worker still has`
              return settled.length === 0 ? Effect.succeed(unseen) : stage.run(settled, context).pipe(
                Effect.as(unseen),
                Effect.catch((error) => Effect.succeed(unseen === null ? error.message : `${error.message}; ${unseen}`))
              )
            }))
          }), { concurrency: chunksAtOnce }))
      return problems.flat().filter((problem) => problem !== null)
    })

    const closePeriod = certain("close", Schema.NullOr(Schema.String), steps.close(runId).pipe(
      Effect.catch((error) => Effect.succeed(error.message))
    ))

    const canceled = certain("report", RunReport, steps.end(aboutRun, "canceled", null, []))

    const charged = Effect.gen(function*() {
      const lines = yield* plan
      if (lines === null) return yield* canceled
      const sent = yield* dispatch(lines)
      const verdict = sent === "go" || sent === "hold" ? yield* settle : sent
      if (verdict === "cancel") yield* drain
      const notes = [...(yield* after(lines)), ...(typeof verdict === "object" ? [verdict.elsewhere] : [])]
      const { differences, problem } = options.reconcile
        ? yield* certain("reconcile", Reconciled, steps.reconcile(runId, options.repair))
        : { differences: null, problem: null }
      if (options.closePeriod && verdict === "go") {
        const problem = yield* closePeriod
        if (problem !== null) notes.push(problem)
      }
      return yield* certain("report", RunReport, steps.end(aboutRun, verdict === "cancel" ? "canceled" : "finished", differences, [...notes, ...(problem === null ? [] : [problem])]))
    })

    const hooks = (report: RunReport) =>
      Effect.forEach(definition?.ended ?? [], (hook, index) =>
        certain(`ended/${index}`, Schema.Void, Effect.catch(hook(report), (error) => Effect.logError(`run ${name}: ${error.message}`))), { discard: true })

    if (begun.canceled) {
      const report = yield* canceled
      yield* hooks(report)
      return report
    }
    const report = yield* charged.pipe(
      Effect.catchCause((cause) => {
        // A workflow that waits, or whose runner stops, is interrupted: it has not failed.
        if (Cause.hasInterrupts(cause)) return Effect.failCause(cause)
        const error = Cause.squash(cause)
        const detail = error instanceof Error ? error.message || error.name : String(error)
        return certain("fail", RunReport, steps.end(aboutRun, "failed", null, [detail])).pipe(
          Effect.tap(hooks),
          Effect.andThen(Effect.failCause(cause))
        )
      })
    )
    yield* hooks(report)
    return report
  })
})

/** Runs billing runs in this process, on the engine that the app provides; with a sweeper and a reconciler where there are any. */
export const layerRunWorkflow: Layer.Layer<
  never,
  Config.ConfigError,
  WorkflowEngine.WorkflowEngine | RunRegistry | RunLedger | RunStash | BillingRun | SpendCap | RunDefinitions
> = Layer.unwrap(Effect.map(make, (handler) => Layer.merge(RunWorkflow.toLayer(handler), DefinedRunWorkflow.toLayer(handler))))

