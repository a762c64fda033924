/**
 * The period that a charge bills, in the one spelling that is hashed into the charge key.
 *
 * `2026-Q3`, `2026Q3` and `Q3-2026` are the same quarter and become `Q3-2026`. A date that does not exist is refused,
 * never shifted. The period comes from the request, never from a clock.
 */
import { DateTime, Result, Schema } from "effect"
import { idProblem } from "./internal/idProblem.ts"
import { remembered } from "./internal/remembered.ts"

/** A canonical period: `2026-07`, `Q3-2026`, `2026`, `2026-W31`, `2026-07-31` or `2026-07-01/2026-07-31`. */
export const BillingPeriod = Schema.NonEmptyString.pipe(Schema.brand("@purser/core/BillingPeriod"))
export type BillingPeriod = typeof BillingPeriod.Type

/** The text names no period that exists. */
export class InvalidPeriod extends Schema.TaggedError<InvalidPeriod>("@purser/core/BillingPeriod/InvalidPeriod")("InvalidPeriod", {
  text: Schema.String,
  hint: Schema.String
}) {
  override get message() {
    return `billing period "${this.text}": ${this.hint}`
  }
  get isRetryable() {
    return false
  }
}

/** First and last day of a period, both included, as UTC milliseconds of their midnight. */
export interface PeriodDays {
  readonly firstDayMs: number
  readonly lastDayMs: number
}

const dayMs = 86_400_000
const accepted = "expected 2026-07, Q3-2026, 2026, 2026-W31, 2026-07-31 or 2026-07-01/2026-07-31"

/** What does not exist is shifted, and then is in another month. */
const utc = (year: number, month: number, day: number): number | undefined => {
  const date = DateTime.makeUnsafe({ year, month, day, hour: 0, minute: 0, second: 0, millisecond: 0 })
  return DateTime.getPartUtc(date, "month") === month ? DateTime.toEpochMillis(date) : undefined
}

const utcDay = (year: string | undefined, month: string | undefined, day: string | undefined): number | undefined =>
  utc(Number(year), Number(month), Number(day))

const isoWeekStart = (year: number, week: number): number | undefined => {
  const fourth = utc(year, 1, 4)!
  const monday = fourth - ((new Date(fourth).getUTCDay() + 6) % 7) * dayMs
  const start = monday + (week - 1) * 7 * dayMs
  // The week belongs to the year that its Thursday is in: this refuses week 53 of a year that has 52, and week 0.
  return new Date(start + 3 * dayMs).getUTCFullYear() === year ? start : undefined
}

const days = (firstDayMs: number | undefined, lastDayMs: number | undefined): PeriodDays | undefined =>
  firstDayMs === undefined || lastDayMs === undefined || lastDayMs < firstDayMs ? undefined : { firstDayMs, lastDayMs }

const monthDays = (year: number, month: number, months: number): PeriodDays | undefined => {
  const next = month + months
  return days(utc(year, month, 1), (utc(next > 12 ? year + 1 : year, next > 12 ? next - 12 : next, 1) ?? Number.NaN) - dayMs)
}

type Read = { readonly canonical: string; readonly days: PeriodDays | undefined }

const forms: ReadonlyArray<readonly [RegExp, (match: RegExpExecArray) => Read]> = [
  [/^(\d{4})-(\d{2})$/, ([text, y, m]) => ({ canonical: text, days: monthDays(Number(y), Number(m), 1) })],
  [/^Q([1-4])-(\d{4})$/, ([text, q, y]) => ({ canonical: text, days: monthDays(Number(y), Number(q) * 3 - 2, 3) })],
  [/^(\d{4})-?Q([1-4])$/, ([, y, q]) => ({ canonical: `Q${q}-${y}`, days: monthDays(Number(y), Number(q) * 3 - 2, 3) })],
  [/^(\d{4})$/, ([text, y]) => ({ canonical: text, days: days(utc(Number(y), 1, 1), utc(Number(y), 12, 31)) })],
  [/^(\d{4})-W(\d{2})$/, ([text, y, w]) => {
    const start = isoWeekStart(Number(y), Number(w))
    return { canonical: text, days: start === undefined ? undefined : { firstDayMs: start, lastDayMs: start + 6 * dayMs } }
  }],
  [/^(\d{4})-(\d{2})-(\d{2})$/, ([text, y, m, d]) => ({ canonical: text, days: days(utcDay(y, m, d), utcDay(y, m, d)) })],
  [/^(\d{4})-(\d{2})-(\d{2})\/(\d{4})-(\d{2})-(\d{2})$/, ([text, y, m, d, lastY, lastM, lastD]) => ({ canonical: text, days: days(utcDay(y, m, d), utcDay(lastY, lastM, lastD)) })]
]

// A run has few periods and many rows.
const read = remembered(64, (text): Read | undefined => {
  if (/^(?:Q\d-)?0000/.test(text)) return undefined
  for (const [form, make] of forms) {
    const match = form.exec(text)
    if (match !== null) return make(match)
  }
  return undefined
})

/** How period texts are read. `opaque` takes any free label that could be an id as it stands, and such a label has no days. */
export interface PeriodOptions {
  readonly labels?: "calendar" | "opaque"
}

/** Canonical period of a text; refuses what does not exist (`2026-13`, `2026-Q5`, `2026-02-29`) and unknown spellings. */
export const parsePeriod = (text: string, options?: PeriodOptions): Result.Result<BillingPeriod, InvalidPeriod> => {
  const found = read(text)
  if (found?.days !== undefined) return Result.succeed(found.canonical as BillingPeriod)
  if (options?.labels === "opaque") {
    const problem = idProblem(text)
    return problem === undefined
      ? Result.succeed(text as BillingPeriod)
      : Result.fail(new InvalidPeriod({ text, hint: `a label ${problem}` }))
  }
  return Result.fail(new InvalidPeriod({ text, hint: found === undefined ? accepted : "this period does not exist" }))
}

/** First and last day of a canonical period; `undefined` for a free label. */
export const periodDays = (period: BillingPeriod): PeriodDays | undefined => read(period)?.days

/** Whether the first day of the period has begun anywhere on earth (UTC+14); free labels always have. */
export const periodHasBegun = (period: BillingPeriod, nowMs: number): boolean => {
  const found = periodDays(period)
  return found === undefined || nowMs >= found.firstDayMs - 14 * 3_600_000
}

/** Whether the last day of the period is over everywhere on earth (UTC-12); free labels always are. */
export const periodHasEnded = (period: BillingPeriod, nowMs: number): boolean => {
  const found = periodDays(period)
  return found === undefined || nowMs >= found.lastDayMs + dayMs + 12 * 3_600_000
}
