/** What a runner does about a run beside its steps: it follows the register, and is patient with the stores. */
import { isRunOver, type LedgerError, type RunRecord, RunRegistry } from "@purser/core"
import { Deferred, type Duration, Effect, Schedule, type Scope } from "effect"
import type { DispatchStop } from "../RunDispatch.ts"
import { WaitNote } from "./WaitNote.ts"

const isHeld = (run: RunRecord | undefined) => run === undefined || run.state === "paused" || run.state === "canceling" || isRunOver(run.state)

/** A stop that follows the register as long as the scope lasts. A register that cannot be read stops nothing. */
export const followStop = Effect.fnUntraced(function*(runId: string, every: Duration.Duration): Effect.fn.Return<DispatchStop, never, RunRegistry | Scope.Scope> {
  const registry = yield* RunRegistry
  const stopped = yield* Deferred.make<void>()
  let isStopped = false
  const look = registry.find(runId).pipe(
    Effect.map(isHeld),
    Effect.orElseSucceed(() => false),
    Effect.flatMap((held) => {
      isStopped = held
      return held ? Deferred.succeed(stopped, undefined) : Effect.void
    })
  )
  yield* look
  if (!isStopped) {
    yield* Effect.andThen(Effect.sleep(every), look).pipe(Effect.repeat({ until: () => isStopped }), Effect.forkScoped)
  }
  return { isStopped: () => isStopped, whenStopped: Deferred.await(stopped) }
})

/** Comes back once the run is canceled. A register that cannot be read cancels nothing. */
export const whenCanceled = (registry: RunRegistry["Service"], runId: string, every: Duration.Duration): Effect.Effect<void> =>
  registry.find(runId).pipe(
    Effect.map((run) => run?.state === "canceling"),
    Effect.orElseSucceed(() => false),
    Effect.repeat({ until: (canceled) => canceled, schedule: Schedule.spaced(every) }),
    Effect.asVoid
  )

interface Retryable {
  readonly message: string
  readonly isRetryable: boolean
}

/** A store that is there and refuses what it was given (SQLSTATE 22…: data, 23…: a constraint) refuses it for ever. */
const isRefusal = (error: object): boolean => {
  const reason = "reason" in error ? error.reason : undefined
  return typeof reason === "object" && reason !== null && "detail" in reason && /^2[23][0-9A-Z]{3} /.test(String(reason.detail))
}

/** How the detail of a run that waits begins. */
const waits = "waits for a store: "

/** Keeps in the register why a run waits, where that can be written, so that `runs show` tells it. */
export const noteWait = (registry: RunRegistry["Service"], runId: string) => (why: string | null): Effect.Effect<void> =>
  (why === null
    // What a person has said meanwhile stays.
    ? Effect.flatMap(registry.find(runId), (run) => run?.detail?.startsWith(waits) === true ? registry.note(runId, { detail: null }) : Effect.void)
    : registry.note(runId, { detail: `${waits}${why}` })).pipe(Effect.timeoutOption("2 seconds"), Effect.ignore)

/** A workflow outlives a store that is away: what may be asked again is asked until it answers. */
export const patiently = <A, E extends Retryable, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(WaitNote, (note) => {
    let hasWaited = false
    const mayHelp = (error: E) => error.isRetryable && !isRefusal(error)
    const waiting = Effect.fnUntraced(function*(error: E) {
      yield* Effect.logWarning(`a run waits for a store: ${error.message}`)
      yield* note(error.message)
      hasWaited = true
    })
    return effect.pipe(
      Effect.tapError((error) => mayHelp(error) ? waiting(error) : Effect.void),
      Effect.retry({ while: mayHelp, schedule: Schedule.min([Schedule.exponential("500 millis"), Schedule.spaced("30 seconds")]) }),
      Effect.tap(() => hasWaited ? note(null) : Effect.void)
    )
  })

/** For calls that can only fail because the store is away, or because of what it was given: that is a defect of the run, which fails with it. */
export const surely = <A, R>(effect: Effect.Effect<A, LedgerError, R>): Effect.Effect<A, never, R> => Effect.orDie(patiently(effect))
