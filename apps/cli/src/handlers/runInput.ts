/**
 * A billing file as chunks of rows for a run. Bad rows are counted and named; unless they may be skipped, the file
 * is refused at its end with all of them, so that a person mends it once. Periods are held against today's date.
 */
import { type BillingPeriod, checkedRequest, periodDays, periodHasBegun, periodHasEnded, type RunRow } from "@purser/core"
import type { DuplicateIdentities } from "@purser/engine"
import { Clock, Effect, Stream } from "effect"
import { type CommandFailed, refused } from "../CommandFailed.ts"
import { InputFile } from "../input/InputFile.ts"
import type { InputOptions } from "../input/InputOptions.ts"
import type { RefusedRow } from "./runReport.ts"

const shownRefusals = 50
const keptRefusals = 100_000
const lateAfterMs = 366 * 86_400_000

/** What was met while reading, filled as the stream runs. */
export interface InputNotes {
  readonly refusals: Array<RefusedRow>
  readonly shown: Array<string>
  refusedRows: number
  blankRows: number
  /** Periods that have begun and are not over. */
  readonly open: Set<BillingPeriod>
  /** Periods that ended more than a year ago. */
  readonly late: Set<BillingPeriod>
  /** Periods that a person allowed by name and that needed it. */
  readonly allowed: Set<BillingPeriod>
}

/** How the file is read. */
export interface RunInputOptions extends InputOptions {
  readonly skipInvalid: boolean
  /** Periods that a person allows by name though they have not begun, are not over, or are long over. */
  readonly allowPeriods: ReadonlySet<string>
}

type Verdict = "ok" | "allowed" | "future"

/** Notes that nothing was met yet. */
export const noNotes = (): InputNotes => ({ refusals: [], shown: [], refusedRows: 0, blankRows: 0, open: new Set(), late: new Set(), allowed: new Set() })

const judge = (period: BillingPeriod, nowMs: number, notes: InputNotes, options: RunInputOptions): Verdict => {
  const days = periodDays(period)
  const isLate = days !== undefined && nowMs - days.lastDayMs > lateAfterMs
  if (options.allowPeriods.has(period)) {
    const hasEnded = periodHasEnded(period, nowMs)
    if (isLate || !hasEnded) notes.allowed.add(period)
    return hasEnded ? "ok" : "allowed"
  }
  if (!periodHasBegun(period, nowMs)) return "future"
  if (!periodHasEnded(period, nowMs)) notes.open.add(period)
  if (isLate) notes.late.add(period)
  return "ok"
}

const listed = (notes: InputNotes, verdict: string): string => {
  const more = notes.refusedRows - notes.shown.length
  return [
    ...notes.shown,
    ...(more > 0 ? [`… and ${more} more`] : []),
    `${notes.refusedRows} ${notes.refusedRows === 1 ? "row is" : "rows are"} ${verdict}`
  ].join("\n")
}

/** Periods that are billed out of their time, which somebody has to say. */
export const outOfTime = (notes: InputNotes) =>
  [
    { periods: [...notes.open], what: "not over yet", question: "before the period is over" },
    { periods: [...notes.late], what: "over for more than a year", question: "so late" }
  ].filter(({ periods }) => periods.length > 0)

/** What a person who is not asked has to say for them, a line for each kind. */
export const outOfTimeTexts = (notes: InputNotes): ReadonlyArray<string> =>
  outOfTime(notes).map(({ periods, what }) => `${periods.join(", ")} ${periods.length === 1 ? "is" : "are"} ${what}: allow it by name with --allow-period, or with --yes`)

const refusedTexts = (notes: InputNotes): ReadonlyArray<string> =>
  [listed(notes, "refused; nothing was charged. Mend the file, or leave the bad rows out with --skip-invalid.")]

/** Lines that are named of one charge, and charges that are named. */
const shownDoubled = 20

const linesText = (lines: ReadonlyArray<number>): string =>
  lines.length <= shownDoubled ? `lines ${lines.join(" and ")}` : `lines ${lines.slice(0, shownDoubled).join(", ")} and ${lines.length - shownDoubled} more`

/** Rows of one identity, as other refusals are told: a line for each. The book finds them, and answers the first of them alone. */
export const doubledTexts = (path: string, doubled: DuplicateIdentities["duplicates"]): ReadonlyArray<string> => [
  ...doubled.map(({ billingPeriod, customerId, item, lines }) =>
    `${path}: ${linesText(lines)} are one charge: customer ${JSON.stringify(customerId)}, period ${billingPeriod}, ${item === null ? "no item" : `item ${JSON.stringify(item)}`}`),
  ...(doubled.length < shownDoubled ? [] : ["… and perhaps more"]),
  `${doubled.length === 1 ? "1 charge stands" : `${doubled.length} charges stand`} in more than one row; nothing was charged. Give rows that are different charges different items.`
]

/** Fails with every row that was refused, unless they may be skipped; `doubled` are rows that are good by themselves, told with them. */
export const verdictOf = (notes: InputNotes, skipInvalid: boolean, doubled: ReadonlyArray<string> = []): Effect.Effect<void, CommandFailed> =>
  Effect.suspend(() => {
    const bad = skipInvalid || notes.refusedRows === 0 ? [] : refusedTexts(notes)
    return bad.length + doubled.length === 0 ? Effect.void : Effect.fail(refused([...bad, ...doubled, ...outOfTimeTexts(notes)].join("\n")))
  })

/** The rows that a run leaves out. */
export const skippedText = (notes: InputNotes): string => listed(notes, "left out")

/** Chunks of rows that can be charged, in line order. Whether the others refuse the file is for the caller to say, with `verdictOf`. */
export const goodRows = (path: string, options: RunInputOptions, notes: InputNotes) =>
  Stream.unwrap(Effect.map(Clock.currentTimeMillis, (nowMs) => {
    const verdicts = new Map<BillingPeriod, Verdict>()
    const refuse = (line: number, text: string) => {
      notes.refusedRows += 1
      if (notes.shown.length < shownRefusals) notes.shown.push(text)
      if (notes.refusals.length < keptRefusals) notes.refusals.push({ line, detail: text })
    }
    return InputFile.rows(path, options).pipe(
      Stream.mapArray((entries) => {
        const chunk: Array<RunRow> = []
        for (const entry of entries) {
          if (entry._tag === "Blank") {
            notes.blankRows += 1
            continue
          }
          if (entry._tag === "Refusal") {
            refuse(entry.line, entry.message)
            continue
          }
          const period = entry.request.billingPeriod
          let verdict = verdicts.get(period)
          if (verdict === undefined) {
            verdict = judge(period, nowMs, notes, options)
            verdicts.set(period, verdict)
          }
          if (verdict === "future") {
            refuse(entry.line, `${path}: line ${entry.line}, column billing_period: "${period}" has not begun; --allow-period ${period} bills it all the same`)
            continue
          }
          chunk.push(verdict === "ok"
            ? { line: entry.line, chargeKey: entry.chargeKey, request: entry.request }
            : { line: entry.line, chargeKey: entry.chargeKey, request: checkedRequest({ ...entry.request, allowFuture: true }) })
        }
        return [chunk] as const
      }),
      Stream.filter((chunk) => chunk.length > 0)
    )
  }))

/** Rows that can be charged; it fails at its end where others are refused. */
export const runRows = (path: string, options: RunInputOptions, notes: InputNotes) =>
  Stream.concat(goodRows(path, options, notes), Stream.fromEffectDrain(verdictOf(notes, options.skipInvalid)))
