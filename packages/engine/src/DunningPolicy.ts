/**
 * When a declined charge is asked for again: a schedule, stepped once per attempt, with what is known of the decline. It
 * names the time and does nothing else: who asks again is `purser retry --due`, or a workflow that waits.
 *
 * A hard decline has no next attempt, whatever the schedule says.
 */
import { type ChargeKey, declineAdvice, type DeclineAdvice, type Declined } from "@purser/core"
import { Clock, Config, Duration, Effect, Option, Pull, Schedule, Schema } from "effect"

/** One decline as the schedule sees it. */
export interface DeclineFacts extends DeclineAdvice {
  readonly chargeKey: ChargeKey
  /** The attempt that was declined; starts at 1. */
  readonly attempt: number
  readonly code: string
  readonly declineCode: string | null
  readonly adviceCode: string | null
}

/** A schedule of attempts. The wait before attempt `n + 1` is its `n`th delay; where it has ended, only a person asks again. */
export type DunningPolicy = Schedule.Schedule<unknown, DeclineFacts>

/** One wait after another, then no more. */
export const dunningWaits = (waits: ReadonlyArray<Duration.Input>): DunningPolicy =>
  Schedule.recurs(waits.length).pipe(
    Schedule.setInputType<DeclineFacts>(),
    Schedule.modifyDelay(({ attempt }) => Effect.succeed(Duration.fromInputUnsafe(waits[attempt - 1] ?? 0)))
  )

const waitsIn = (text: string): ReadonlyArray<Duration.Duration> | undefined => {
  if (text.trim() === "none") return []
  const waits = text.split(",").map((wait) => Option.getOrUndefined(Schema.decodeOption(Schema.DurationFromString)(wait.trim())))
  return waits.every((wait): wait is Duration.Duration => {
    const ms = wait === undefined ? 0 : Duration.toMillis(wait)
    return ms >= 1000 && ms <= 90 * 86_400_000
  }) ? waits : undefined
}

/** `PURSER_DUNNING_WAITS`: durations by comma; `none` for no attempt without a person. */
export const dunningConfig: Config.Config<DunningPolicy> = Config.schema(
  Schema.String.check(Schema.makeFilter((text: string) =>
    waitsIn(text) !== undefined || "expected durations by comma, each from 1 second to 90 days, or none")),
  "PURSER_DUNNING_WAITS"
).pipe(
  Config.withDefault("1 day,3 days,5 days,7 days"),
  Config.map((text) => dunningWaits(waitsIn(text) ?? []))
)

/** Milliseconds from the decline to the next attempt, or null when there is none. */
export const nextAttemptAfterMs = Effect.fnUntraced(function*(policy: DunningPolicy, attempt: number, declined: Declined) {
  const advice = declineAdvice(declined)
  if (advice.kind === "hard") return null
  const { adviceCode, chargeKey, code, declineCode } = declined
  const facts: DeclineFacts = { ...advice, chargeKey, attempt, code, declineCode, adviceCode }
  const step = yield* Schedule.toStep(policy)
  const nowMs = yield* Clock.currentTimeMillis
  let afterMs: number | null = null
  for (let taken = 0; taken < attempt; taken++) {
    afterMs = yield* step(nowMs, facts).pipe(
      Effect.map(([, wait]): number | null => Duration.toMillis(wait)),
      Pull.catchDone(() => Effect.succeed(null))
    )
    if (afterMs === null) return null
  }
  return afterMs
})
