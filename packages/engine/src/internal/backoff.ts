/** When a step is tried again: the policy's schedule, driven by the error of the last try. */
import type { ChargeError } from "@purser/core"
import { Effect, Pull, Schedule } from "effect"
import type { PipelineSettings } from "../PipelineOptions.ts"

/** Waits as the policy says and answers true, or answers false when it gives up. */
export type NextTry = (error: ChargeError) => Effect.Effect<boolean>

/** A fresh run of the policy, for one step of one charge. */
export const startTries = (settings: PipelineSettings): Effect.Effect<NextTry> =>
  Effect.map(Schedule.toStepWithSleep(settings.retry), (step) => (error: ChargeError) =>
    step(error).pipe(Effect.as(true), Pull.catchDone(() => Effect.succeed(false))))

/** A refusal that is certain: the same call would be refused again, and no money moved. */
export const isDefinitive = (error: ChargeError): boolean => error.outcome === "not_charged" && !error.isRetryable

/** The key of this call will never give another answer: the stored one is a 5xx, or the key belongs to other parameters. */
export const isSpentKey = (error: ChargeError): boolean =>
  error.reason._tag === "KeyReused" || (error.reason._tag === "GatewayUnavailable" && error.reason.replayed)
