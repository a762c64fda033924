/** What the pipeline may be told: who it is, how patient it is with the processor, and from when it must look before it creates. */
import type { ChargeError, LedgerError } from "@purser/core"
import { dunningConfig, type DunningPolicy } from "./DunningPolicy.ts"
import { boundedInt } from "./internal/boundedInt.ts"
import { Config, Context, Duration, Effect, Layer, Option, Random, Schedule } from "effect"

/** Settings of the pipeline; durations in milliseconds. */
export interface PipelineSettings {
  /** The name of this worker in leases and on the event trail. */
  readonly worker: string
  /**
   * When a step that may be repeated is tried again, and when the charge is handed back instead. It is asked only where
   * the protocol allows a repeat, with the error of the last try; it must end.
   */
  readonly retry: Schedule.Schedule<unknown, ChargeError | LedgerError>
  /** After a hand-back, how long others leave the charge alone. From an attempt's eleventh on at least a twentieth of the time since the first claim, up to ten minutes. */
  readonly handBackMs: number
  /** How often a payment that settles later is looked at. */
  readonly pollMs: number
  /** Age of the first claim past which a lost create is looked for before it is repeated: one hour less than Stripe keeps keys. */
  readonly lookUpAfterMs: number
  /** Set after the ledger was restored from a backup: every charge is looked for since then before anything is created. */
  readonly restorePointMs: number | undefined
  /** When a declined charge is asked for again. */
  readonly dunning: DunningPolicy
  /** Calls in a row that the processor leaves without an answer before charging pauses. */
  readonly outageAfter: number
  /** First wait before a processor that was found away is asked again; each further one is twice as long, up to a minute. */
  readonly outageProbeMs: number
}

const settings = Config.all({
  worker: Config.option(Config.NonEmptyString("PURSER_WORKER")),
  attemptsMax: boundedInt("PURSER_GATEWAY_ATTEMPTS", { minimum: 1, maximum: 100, default: 6 }),
  backoff: Config.Duration("PURSER_GATEWAY_BACKOFF").pipe(Config.withDefault(Duration.millis(250))),
  backoffMax: Config.Duration("PURSER_GATEWAY_BACKOFF_MAX").pipe(Config.withDefault(Duration.seconds(8))),
  handBack: Config.Duration("PURSER_HAND_BACK").pipe(Config.withDefault(Duration.seconds(5))),
  poll: Config.Duration("PURSER_PROCESSING_POLL").pipe(Config.withDefault(Duration.minutes(10))),
  lookUpAfter: Config.Duration("PURSER_LOOK_UP_AFTER").pipe(Config.withDefault(Duration.hours(23))),
  restorePoint: Config.option(Config.Date("PURSER_RESTORE_POINT")),
  dunning: dunningConfig,
  outageAfter: boundedInt("PURSER_OUTAGE_AFTER", { minimum: 1, maximum: 1_000_000, default: 20 }),
  outageProbe: Config.Duration("PURSER_OUTAGE_PROBE").pipe(Config.withDefault(Duration.seconds(2)))
})

/** How the default policy is given. */
export interface RetryOptions {
  /** Tries of a step in all. */
  readonly attemptsMax: number
  /** First wait between two tries; each further one is twice as long, with jitter, up to `backoffMaxMs`. */
  readonly backoffMs: number
  readonly backoffMaxMs: number
}

/** Exponential with jitter and bounds; a rate limit that names its own wait is waited out. */
export const retryPolicy = (options: RetryOptions): Schedule.Schedule<unknown, ChargeError | LedgerError> =>
  Schedule.exponential(Duration.millis(options.backoffMs)).pipe(
    Schedule.setInputType<ChargeError | LedgerError>(),
    Schedule.jittered,
    Schedule.modifyDelay(({ duration, input }) => {
      const own = Math.min(Duration.toMillis(duration), options.backoffMaxMs)
      return Effect.succeed(Duration.millis(input.reason._tag === "RateLimited" ? Math.max(own, input.reason.retryAfterMs ?? 0) : own))
    }),
    Schedule.upTo({ times: Math.max(1, options.attemptsMax) - 1 })
  )

/** The settings in force. Without a layer of this service the pipeline reads `PURSER_…` keys of the configuration. */
export class PipelineOptions extends Context.Service<PipelineOptions, PipelineSettings>()("@purser/engine/PipelineOptions") {
  /** Settings from the configuration; a wrong value fails at start. */
  static readonly fromConfig: Effect.Effect<PipelineSettings, Config.ConfigError> = Effect.gen(function*() {
    const read = yield* settings
    const suffix = (yield* Random.nextIntBetween(0, 2 ** 32)).toString(16).padStart(8, "0")
    return {
      worker: Option.getOrElse(read.worker, () => `worker-${suffix}`),
      retry: retryPolicy({
        attemptsMax: read.attemptsMax,
        backoffMs: Duration.toMillis(read.backoff),
        backoffMaxMs: Duration.toMillis(read.backoffMax)
      }),
      handBackMs: Duration.toMillis(read.handBack),
      dunning: read.dunning,
      pollMs: Duration.toMillis(read.poll),
      lookUpAfterMs: Duration.toMillis(read.lookUpAfter),
      restorePointMs: Option.isSome(read.restorePoint) ? read.restorePoint.value.getTime() : undefined,
      outageAfter: read.outageAfter,
      outageProbeMs: Duration.toMillis(read.outageProbe)
    }
  })

  /** Settings given in the program, the rest from the configuration. */
  static layer(given: Partial<PipelineSettings>): Layer.Layer<PipelineOptions, Config.ConfigError> {
    return Layer.effect(PipelineOptions, Effect.map(PipelineOptions.fromConfig, (read) => ({ ...read, ...given })))
  }
}
