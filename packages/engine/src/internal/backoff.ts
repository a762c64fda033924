/** When a step is tried again: the policy's schedule, driven by the error of the last try. */
import { type ChargeError, LedgerError, LedgerUnavailable, type SpendCapError } from "@purser/core"
import { type Cause, Effect, Pull, Schedule } from "effect"
import type { PipelineSettings } from "../PipelineOptions.ts"

/** Waits as the policy says and answers true, or answers false when it gives up. */
export type NextTry = (error: ChargeError) => Effect.Effect<boolean>

/** A fresh run of the policy, for one step of one charge. */
export const startTries = (settings: PipelineSettings): Effect.Effect<NextTry> =>
  Effect.sync(() => {
    // A schedule is a good deal of state, and nearly every step succeeds at once.
    let started: Effect.Success<ReturnType<typeof start>> | undefined
    const start = () => Schedule.toStepWithSleep(settings.retry)
    return (error: ChargeError) =>
      Effect.suspend(() => started === undefined ? Effect.tap(start(), (step) => Effect.sync(() => void (started = step))) : Effect.succeed(started)).pipe(
        Effect.flatMap((step) => step(error)),
        Effect.as(true),
        Pull.catchDone(() => Effect.succeed(false))
      )
  })

/** When it is done again. */
export interface Patience<E> {
  readonly while: (error: E) => boolean
  readonly schedule: Schedule.Schedule<unknown, E>
}

/** `Effect.retry` of what has failed once. */
export const retryFailed = <A, E, R>(effect: Effect.Effect<A, E, R>, options: Patience<E>, cause: Cause.Cause<E>): Effect.Effect<A, E, R> =>
  Effect.catch(Effect.failCause(cause), (first) => {
    if (!options.while(first)) return Effect.fail(first)
    let failed: { readonly error: E } | undefined = { error: first }
    return Effect.retry(Effect.suspend((): Effect.Effect<A, E, R> => {
      if (failed === undefined) return effect
      const { error } = failed
      failed = undefined
      return Effect.fail(error)
    }), options)
  })

/** `Effect.retry` whose schedule begins with the first failure. */
export const retryAfterFailure = <A, E, R>(effect: Effect.Effect<A, E, R>, options: Patience<E>): Effect.Effect<A, E, R> =>
  Effect.catchCause(effect, (cause) => retryFailed(effect, options, cause))

/** A read that is refused for the rate of calls waits, as a charge does; what any other failure means is the caller's affair. */
export const heedingRate = (settings: PipelineSettings) => <A>(read: Effect.Effect<A, ChargeError>): Effect.Effect<A, ChargeError> =>
  retryAfterFailure(read, { while: (error) => error.reason._tag === "RateLimited", schedule: settings.retry })

/** A call that nobody repeats later, again while the store is away; which part of the store it was makes no difference to the wait. */
export const untilStoreAnswers = <A>(settings: PipelineSettings, call: Effect.Effect<A, LedgerError | SpendCapError>): Effect.Effect<A, LedgerError> =>
  retryAfterFailure(
    Effect.mapError(call, (error) =>
      error._tag === "LedgerError" ? error : new LedgerError({ reason: new LedgerUnavailable({ operation: "cap", detail: error.message }), chargeKey: error.chargeKey })),
    { while: (error) => error.isRetryable, schedule: settings.retry }
  )

/** A refusal that is certain: the same call would be refused again, and no money moved. */
export const isDefinitive = (error: ChargeError): boolean => error.outcome === "not_charged" && !error.isRetryable

/** The key of this call will never give another answer: the stored one is a 5xx, or the key belongs to other parameters. */
export const isSpentKey = (error: ChargeError): boolean =>
  error.reason._tag === "KeyReused" || (error.reason._tag === "GatewayUnavailable" && error.reason.replayed)
