/** How long to wait before a step is tried again: exponential with jitter, or what the processor asked for. */
import { type ChargeError, type ChargeErrorReason } from "@purser/core"
import { Effect, Random } from "effect"
import type { PipelineSettings } from "../PipelineOptions.ts"

/** Sleeps before try number `tried + 1`. */
export const waitBefore = (settings: PipelineSettings, tried: number, error: ChargeError): Effect.Effect<void> =>
  Effect.flatMap(Random.nextBetween(0.5, 1), (jitter) => {
    const asked: ChargeErrorReason = error.reason
    const own = Math.min(settings.backoffMs * 2 ** (tried - 1), settings.backoffMaxMs) * jitter
    return Effect.sleep(asked._tag === "RateLimited" && asked.retryAfterMs !== null ? Math.max(own, asked.retryAfterMs) : own)
  })

/** A refusal that is certain: the same call would be refused again, and no money moved. */
export const isDefinitive = (error: ChargeError): boolean => error.outcome === "not_charged" && !error.isRetryable

/** The key of this call will never give another answer: the stored one is a 5xx, or the key belongs to other parameters. */
export const isSpentKey = (error: ChargeError): boolean =>
  error.reason._tag === "KeyReused" || (error.reason._tag === "GatewayUnavailable" && error.reason.replayed)
