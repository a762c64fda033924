/** What a runner does about a run beside its steps: it follows the register, and is patient with the stores. */
import { type LedgerError, type RunRecord, RunRegistry } from "@purser/core"
import { Deferred, type Duration, Effect, Schedule, type Scope } from "effect"
import type { DispatchStop } from "../RunDispatch.ts"

const isHeld = (run: RunRecord | undefined) => run === undefined || run.state === "paused" || run.state === "canceling"

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

/** A workflow outlives a store that is away: what may be asked again is asked until it answers. */
export const patiently = <A, E extends Retryable, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  effect.pipe(
    Effect.tapError((error) => error.isRetryable ? Effect.logWarning(`a run waits for a store: ${error.message}`) : Effect.void),
    Effect.retry({ while: (error) => error.isRetryable, schedule: Schedule.min([Schedule.exponential("500 millis"), Schedule.spaced("30 seconds")]) })
  )

/** For calls that can only fail because the store is away. */
export const surely = <A, R>(effect: Effect.Effect<A, LedgerError, R>): Effect.Effect<A, never, R> => Effect.orDie(patiently(effect))
