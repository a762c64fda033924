/**
 * When a declined charge is asked for again: a schedule, stepped once per attempt, with what is known of the decline. It
 * names the time and does nothing else: who asks again is a dunning case, or `purser retry --due`.
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

/** Waits by what is known of the decline: the first is that after attempt 1, and so on; after the last there is no more. */
export const dunningWaitsBy = (waitsOf: (facts: DeclineFacts) => ReadonlyArray<Duration.Input>): DunningPolicy =>
  Schedule.forever.pipe(
    Schedule.setInputType<DeclineFacts>(),
    Schedule.while(({ attempt, input }) => Effect.succeed(attempt <= waitsOf(input).length)),
    Schedule.modifyDelay(({ attempt, input }) => Effect.succeed(Duration.fromInputUnsafe(waitsOf(input)[attempt - 1]!)))
  )

/** One wait after another, then no more. */
export const dunningWaits = (waits: ReadonlyArray<Duration.Input>): DunningPolicy => dunningWaitsBy(() => waits)

type Waits = ReadonlyArray<Duration.Duration>

const waitsIn = (text: string): Waits | undefined => {
  if (text.trim() === "none") return []
  const waits = text.split(",").map((wait) => Option.getOrUndefined(Schema.decodeOption(Schema.DurationFromString)(wait.trim())))
  return waits.every((wait): wait is Duration.Duration => {
    const ms = wait === undefined ? 0 : Duration.toMillis(wait)
    return ms >= 1000 && ms <= 90 * 86_400_000
  }) ? waits : undefined
}

const waitsByCodeIn = (text: string): ReadonlyMap<string | null, Waits> | undefined => {
  const found = new Map<string, Waits>()
  for (const entry of text.split(";").filter((entry) => entry.trim() !== "")) {
    const match = /^\s*([a-z_]+)\s*=(.*)/s.exec(entry)
    if (match === null) return undefined
    const waits = waitsIn(match[2]!)
    if (waits === undefined) return undefined
    found.set(match[1]!, waits)
  }
  return found
}

const read = <A>(name: string, usual: string, from: (text: string) => A | undefined, expected: string): Config.Config<A> =>
  Config.schema(Schema.String.check(Schema.makeFilter((text: string) => from(text) !== undefined || `expected ${expected}`)), name).pipe(
    Config.withDefault(usual),
    Config.map((text) => from(text)!)
  )

const durations = "durations by comma, each from 1 second to 90 days, or none"

/**
 * `PURSER_DUNNING_WAITS`: durations by comma; `none` for no attempt without a person. `PURSER_DUNNING_WAITS_BY_CODE`: other
 * waits for some declines, named by decline code, advice, error code or what would help, the first that is listed.
 */
export const dunningConfig: Config.Config<DunningPolicy> = Config.all({
  waits: read("PURSER_DUNNING_WAITS", "1 day,3 days,5 days,7 days", waitsIn, durations),
  byCode: read("PURSER_DUNNING_WAITS_BY_CODE", "", waitsByCodeIn, `CODE=WAITS by semicolon, where WAITS are ${durations}`)
}).pipe(
  Config.map(({ byCode, waits }) =>
    dunningWaitsBy(({ adviceCode, code, declineCode, remedy }) =>
      [declineCode, adviceCode, code, remedy].map((name) => byCode.get(name)).find((listed) => listed !== undefined) ?? waits))
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
