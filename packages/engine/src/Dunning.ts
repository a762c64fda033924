/**
 * Dunning as a durable workflow: one execution per case, which looks at the charge, waits for days, asks again by policy, and
 * stops when the charge is paid, when a new method was tried, when a person cancels, or when policy asks no more.
 *
 * It holds no truth: attempts and their numbers are the ledger's, the case is the book's, and each look starts from both. So
 * it may be replayed, woken or started anew at any time. A charge is never one of its steps; another attempt is.
 */
import { ChargeGateway, DunningBook, Ledger, type LedgerError, SpendCap } from "@purser/core"
import { Config, Duration, Effect, Layer, Option, Result, Schedule, Schema, Semaphore } from "effect"
import { Activity, DurableClock, DurableDeferred, Workflow, type WorkflowEngine } from "effect/workflow"
import { ChargePipeline } from "./ChargePipeline.ts"
import { DunningHooks, type GivenUp } from "./DunningHooks.ts"
import { boundedInt } from "./internal/boundedInt.ts"
import { DunningStep, dunningStep } from "./internal/dunningStep.ts"
import { unleased } from "./internal/observe.ts"
import { PipelineOptions } from "./PipelineOptions.ts"
import { isNoRoom, retryCharge } from "./RetryCharge.ts"

/** The workflow: its payload names the case, its success says in how many steps it came to its end. */
export const Dunning = Workflow.make("purser/Dunning", {
  payload: { caseId: Schema.NonEmptyString },
  success: Schema.Struct({ steps: Schema.Int }),
  idempotencyKey: ({ caseId }) => caseId
})

/** Looks of one case at the most; a schedule of years has fewer. */
const stepsMax = 2000
/** After something that could not be decided. */
const againMs = 60_000
/** After an attempt for which the cap had no room: twice as long each time, up to a day. */
const roomMs = (tries: number) => Math.min(86_400_000, 3_600_000 * 2 ** Math.min(tries, 10))
const finalTriesMax = 12
const finalBackoffMaxMs = 86_400_000

const settings = Config.all({
  grace: Config.Duration("PURSER_DUNNING_GRACE").pipe(Config.withDefault(Duration.days(3))),
  final: Config.Literals(["cancel", "keep"], "PURSER_DUNNING_FINAL").pipe(Config.withDefault("cancel" as const)),
  concurrency: boundedInt("PURSER_DUNNING_CONCURRENCY", { minimum: 1, maximum: 1000, default: 16 }),
  poll: Config.Duration("PURSER_PROCESSING_POLL").pipe(Config.withDefault(Duration.minutes(10)))
})

/** Completed by whoever sees that something has changed for the case while this step waits. */
const wakeOf = (step: number) => DurableDeferred.make(`wake/${step}`)

/** Ends the wait of a step, from anywhere. A step that does not wait any more is not disturbed. */
export const wakeDunning = Effect.fnUntraced(function*(caseId: string, step: number): Effect.fn.Return<void, never, WorkflowEngine.WorkflowEngine> {
  const deferred = wakeOf(step)
  const token = yield* DurableDeferred.tokenFromPayload(deferred, { workflow: Dunning, payload: { caseId } })
  yield* DurableDeferred.succeed(deferred, { token, value: undefined })
})

/** What came of an attempt: whether it is decided, or that the cap had no room for it. */
const Attempted = Schema.Union([Schema.Boolean, Schema.Literal("no_room")])

const waitFor = (step: number, forMs: number) =>
  DurableDeferred.raceAll({
    name: `wait/${step}`,
    success: Schema.Void,
    error: Schema.Never,
    effects: [
      DurableClock.sleep({ name: `timer/${step}`, duration: Duration.millis(forMs), inMemoryThreshold: Duration.zero }),
      DurableDeferred.await(wakeOf(step))
    ]
  })

/** The store may be away for a while: a workflow has time. */
const patiently = <A, R>(call: Effect.Effect<A, LedgerError, R>): Effect.Effect<A, never, R> =>
  call.pipe(
    Effect.tapError((error) => Effect.logWarning(`a dunning case waits for the store: ${error.message}`)),
    Effect.retry(Schedule.min([Schedule.exponential("500 millis"), Schedule.spaced("1 minute")])),
    Effect.orDie
  )

/** What came of it. A defect is a failure like another: it must not end the workflow with its case open. */
const decided = <E extends { readonly message: string }, R>(call: Effect.Effect<void, E, R>): Effect.Effect<Result.Result<void, { readonly message: string }>, never, R> =>
  Effect.result(Effect.catchDefect(call, (defect) => Effect.fail({ message: `it failed inside: ${String(defect)}` })))

const made = Effect.gen(function*() {
  const book = yield* DunningBook
  const ledger = yield* Ledger
  const gateway = yield* ChargeGateway
  const pipeline = yield* ChargePipeline
  const cap = yield* SpendCap
  const hooks = yield* Effect.serviceOption(DunningHooks)
  const { concurrency, final, grace, poll } = yield* settings
  // Of many cases that are due in one night, not all are asked at once.
  const gate = yield* Semaphore.make(concurrency)
  const given = yield* Effect.serviceOption(PipelineOptions)
  const worker = `${(Option.isSome(given) ? given.value : yield* PipelineOptions.fromConfig).worker}/dunning`
  const patience = { graceMs: Duration.toMillis(grace), pollMs: Math.max(Duration.toMillis(poll), 3_600_000) }

  const look = (caseId: string, step: number) =>
    Activity.make({
      name: `look/${step}`,
      success: DunningStep,
      execute: patiently(Effect.gen(function*() {
        const next = dunningStep(yield* book.look(caseId, step), patience)
        if (next._tag === "Wait") yield* book.waits(caseId, step, next.forMs)
        return next
      }))
    })

  /**
   * Answers whether it is decided what became of the attempt, or that there was no room for it. When it is run again, the ledger
   * knows how far it came.
   */
  const attempt = (caseId: string, step: number, next: Extract<DunningStep, { readonly _tag: "Ask" | "GoOn" }>, noRoomMs: number) =>
    Activity.make({
      name: `attempt/${step}`,
      success: Attempted,
      execute: Effect.gen(function*(): Effect.fn.Return<typeof Attempted.Type, never, ChargePipeline | Ledger | SpendCap> {
        const view = yield* patiently(book.look(caseId, step))
        const record = view?.record
        if (record === undefined) return true
        const open = record.state === "planned" || record.state === "claimed" || record.state === "attached"
        // Of a repeat the first run may have moved the row: then there is nothing to move, and perhaps something to go on with.
        const isMine = next._tag === "Ask" && record.attempt === next.attempt && !open
        // Canceled since the look, or offered another card: what was decided then is not done any more.
        const now = dunningStep(view, patience)
        if (isMine && (now._tag !== "Ask" || now.paymentMethod !== next.paymentMethod)) return true
        const outcome = yield* decided(
          isMine
            ? Effect.asVoid(retryCharge(record, { actor: next.actor, reason: next.reason, paymentMethod: next.paymentMethod ?? undefined }))
            : open ? Effect.asVoid(pipeline.charge(record.request)) : Effect.void
        )
        if (Result.isSuccess(outcome)) return true
        // The decline stands, and is asked for again later.
        if (isMine && isNoRoom(outcome.failure)) {
          yield* Effect.logWarning(`dunning case ${caseId} asks later: ${outcome.failure.message}`)
          yield* patiently(book.waits(caseId, step, noRoomMs, outcome.failure.message))
          return "no_room"
        }
        yield* Effect.logWarning(`dunning case ${caseId} goes on later: ${outcome.failure.message}`)
        yield* patiently(book.waits(caseId, step, againMs))
        return false
      }).pipe(gate.withPermits(1), Effect.provideService(Ledger, ledger), Effect.provideService(ChargePipeline, pipeline), Effect.provideService(SpendCap, cap))
    })

  /**
   * The unpaid object at the processor is given up, so that nobody can pay it unnoticed; a later retry makes another. Answers whether
   * the charge is unpaid by that.
   */
  const giveUpObject = Effect.fnUntraced(function*({ record }: GivenUp) {
    const { attempt, chargeKey, generation, paymentIntentId: id, request } = record
    if (final === "keep" || id === null || gateway.isOneCall?.(id) === true) return true
    const now = yield* gateway.cancel({ chargeKey, request, generation, attempt }, id)
    if (now.status === "canceled") return true
    // Money that is on its way may arrive: the case waits for what comes of it.
    if (now.status !== "succeeded") return yield* Effect.fail({ message: `${id} is ${now.status} and was not canceled` })
    // Paid just now: a fact, which the next look finds.
    yield* pipeline.resume(unleased(record, worker))
    return false
  })
  const giveUpCase = Effect.fnUntraced(function*(ended: GivenUp) {
    if ((yield* giveUpObject(ended)) && Option.isSome(hooks)) yield* hooks.value.givenUp(ended)
  })

  /** Answers whether the case has come to its end by this. */
  const giveUp = (caseId: string, step: number, waitMs: number) =>
    Activity.make({
      name: `final/${step}`,
      success: Schema.Boolean,
      execute: Effect.gen(function*() {
        const view = yield* patiently(book.look(caseId, step))
        if (view === undefined || dunningStep(view, patience)._tag !== "GiveUp") return true
        const ended = { case: view.case, record: view.record }
        const done = yield* decided(giveUpCase(ended))
        if (Result.isFailure(done)) {
          yield* Effect.logError(`the final action of dunning case ${caseId} failed: ${done.failure.message}`)
          yield* patiently(book.waits(caseId, step, waitMs))
          return false
        }
        const paid = (yield* patiently(ledger.find(view.record.chargeKey)))?.state === "succeeded"
        if (!paid) yield* patiently(book.close(caseId, "given_up", { actor: "dunning", reason: `no attempt is left after ${view.record.attempt}` }))
        return true
      }).pipe(gate.withPermits(1))
    })

  const closing = (caseId: string, step: number, act: Effect.Effect<unknown, LedgerError>) =>
    Activity.make({ name: `close/${step}`, execute: patiently(Effect.andThen(act, book.finished(caseId))) })

  return Effect.fn("Dunning")(function*({ caseId }: { readonly caseId: string }) {
    let finalTries = 0
    let roomTries = 0
    for (let step = 1; step <= stepsMax; step++) {
      const next = yield* look(caseId, step)
      switch (next._tag) {
        case "Wait":
          yield* waitFor(step, next.forMs)
          break
        case "Ask":
        case "GoOn": {
          const noRoomMs = roomMs(roomTries)
          const attempted = yield* attempt(caseId, step, next, noRoomMs)
          roomTries = attempted === "no_room" ? roomTries + 1 : 0
          if (attempted !== true) yield* waitFor(step, attempted === "no_room" ? noRoomMs : againMs)
          break
        }
        case "GiveUp": {
          const waitMs = Math.min(finalBackoffMaxMs, againMs * 2 ** finalTries)
          if (yield* giveUp(caseId, step, waitMs)) break
          finalTries += 1
          if (finalTries < finalTriesMax) yield* waitFor(step, waitMs)
          else {
            yield* closing(caseId, step, book.close(caseId, "given_up", { actor: "dunning", reason: "the final action failed every time" }))
            return { steps: step }
          }
          break
        }
        case "End":
          yield* closing(caseId, step, book.close(caseId, next.end, { actor: "dunning", reason: next.reason }))
          return { steps: step }
        case "Over":
          yield* closing(caseId, step, Effect.void)
          return { steps: step }
      }
    }
    yield* closing(caseId, stepsMax, book.close(caseId, "left", { actor: "dunning", reason: `${stepsMax} steps came to no end` }))
    return { steps: stepsMax }
  }, (effect, { caseId }) => Effect.annotateLogs(effect, { caseId }))
})

/** The workflow, registered with the engine that the app provides. */
export const DunningWorkflow: {
  readonly layer: Layer.Layer<
    never,
    Config.ConfigError,
    WorkflowEngine.WorkflowEngine | DunningBook | Ledger | ChargeGateway | ChargePipeline | SpendCap
  >
} = { layer: Layer.unwrap(Effect.map(made, (execute) => Dunning.toLayer(execute))) }
