/** A billing file as a planned run: read, checked, shown to whoever sits there, and made obligations. Nothing is charged here. */
import { Money, SpendCap } from "@purser/core"
import { BillingRun, type RunCheck } from "@purser/engine"
import type { TransportName } from "@purser/purser"
import { Effect } from "effect"
import { Prompt } from "effect/cli"
import { refused } from "../CommandFailed.ts"
import type { InputOptions } from "../input/InputOptions.ts"
import { note } from "../ui/Output.ts"
import { Tty } from "../ui/Tty.ts"
import { decideCaps, type ExpectedTotal } from "./expectedTotals.ts"
import { comparison, lastBilled } from "./lastPeriod.ts"
import { checkReport } from "./reportFile.ts"
import { doubledTexts, goodRows, type InputNotes, outOfTime, outOfTimeTexts, runRows, skippedText, verdictOf } from "./runInput.ts"

/** What the command line says. */
export interface RunOptions {
  readonly file: string
  readonly input: InputOptions
  readonly expectedTotals: ReadonlyArray<ExpectedTotal>
  readonly headroomPercent: number
  readonly allowPeriods: ReadonlyArray<string>
  readonly skipInvalid: boolean
  readonly overCap: "refuse" | "fits"
  readonly retry: ReadonlyArray<"declined" | "rejected">
  readonly transport: TransportName | undefined
  /** Of workers elsewhere, or of their broker. */
  readonly endpoint: string | undefined
  readonly workers: number
  readonly concurrency: number
  readonly dryRun: boolean
  readonly paused: boolean
  readonly json: boolean
  readonly yes: boolean
  readonly report: string | undefined
  /** Who overrides what, for the log. */
  readonly actor: string
}

const ask = Effect.fnUntraced(function*(question: string) {
  const answer = yield* Prompt.run(Prompt.Confirm({ message: question, initial: false }))
  if (!answer) return yield* refused("Stopped; nothing was charged.")
})

/** Shows the totals, and asks what a person should be asked before money moves. */
const confirmTotals = Effect.fnUntraced(function*(check: RunCheck, notes: InputNotes, options: RunOptions) {
  const tty = yield* Tty
  const caps = yield* (yield* SpendCap).report()
  const farOff: Array<string> = []
  /** Totals whose cap nobody has set: it would be made of the file that it is to hold. */
  const ofItself: Array<{ readonly label: string; readonly muchMore: string | undefined }> = []
  for (const { cap, total } of check.totals) {
    const last = lastBilled(total, caps)
    const beside = last === undefined ? undefined : comparison(total, last)
    if (beside?.farOff !== undefined) farOff.push(`${total.billingPeriod} ${total.currency}: ${beside.farOff}`)
    if (cap === undefined && options.expectedTotals.length === 0) {
      ofItself.push({ label: `${total.billingPeriod} ${total.currency}`, muchMore: beside?.muchMore === true ? beside.farOff : undefined })
    }
    const amount = Money.formatMinor(total.amountMinor, total.currency)
    yield* note(`${total.billingPeriod} ${total.currency}: ${total.rows} rows, ${amount}${
      cap === undefined ? "" : `; cap ${Money.formatMinor(cap.capMinor, total.currency)}, ${Money.formatMinor(cap.reservedMinor, total.currency)} used`
    }${beside === undefined ? "" : `; ${beside.text}`}`)
  }
  if (notes.refusedRows > 0) yield* note(skippedText(notes))
  if (notes.blankRows > 0) yield* note(`${notes.blankRows} blank rows ignored`)
  for (const text of farOff) yield* note(`warning: ${text}`)
  const unusual = outOfTime(notes)
  for (const { periods, what } of unusual) yield* note(`${what}: ${periods.join(", ")}`)
  if (unusual.length > 0 && !options.yes && !tty.interactive) return yield* refused(outOfTimeTexts(notes).join("\n"))
  const named = [...notes.allowed].map((period) => `${period} by --allow-period`)
  const overridden = [...named, ...(options.yes ? unusual.flatMap(({ periods, what }) => periods.map((period) => `${period} (${what}) by --yes`)) : [])]
  if (overridden.length > 0 && !options.dryRun) yield* Effect.logWarning(`billed out of its time, as ${options.actor} decided: ${overridden.join(", ")}`)
  if (options.yes || options.dryRun) return
  if (!tty.interactive) {
    const wrong = ofItself.find(({ muchMore }) => muchMore !== undefined)
    if (wrong !== undefined) {
      return yield* refused(`${wrong.label}: ${wrong.muchMore}, and nobody has said what to expect: name the total with --expected-total, or say --yes`)
    }
    for (const { label } of ofItself) yield* note(`${label}: no total was named (--expected-total), so that the file's own is expected`)
    return
  }
  for (const { periods, question } of unusual) {
    yield* ask(`Bill ${periods.join(", ")} ${question}?`)
    yield* Effect.logWarning(`billed out of its time, as ${options.actor} decided: ${periods.join(", ")} by answer`)
  }
  if (farOff.length > 0) yield* ask("Is that right, though it is far from the last time?")
  if (options.expectedTotals.length === 0) yield* ask("Are these the totals that you expect?")
})

const inputOf = (options: RunOptions) => ({ ...options.input, skipInvalid: options.skipInvalid, allowPeriods: new Set(options.allowPeriods) })

/** The file's rows; fails at their end where some are refused. */
export const rowsOfFile = (options: RunOptions, notes: InputNotes) => runRows(options.file, inputOf(options), notes)

/** Plans the file as the run of this id, or what is late in it behind the rows of another; `notes` are filled as it is read. */
export const planFile = Effect.fnUntraced(function*(options: RunOptions, id: string, notes: InputNotes, lateFor?: string) {
  const runs = yield* BillingRun
  if (options.report !== undefined && !options.dryRun) yield* checkReport(options.report, options.file)
  const verdict = (doubled?: ReadonlyArray<string>) => verdictOf(notes, options.skipInvalid, doubled)
  return yield* runs.plan({
    runId: id,
    source: options.file,
    // Not refused at the end of the rows: those of one identity are known when all are staged, and are told with the bad ones.
    rows: goodRows(options.file, inputOf(options), notes),
    ...(lateFor === undefined ? {} : { extends: lateFor }),
    overCap: options.overCap,
    dryRun: options.dryRun,
    decide: (check) =>
      Effect.gen(function*() {
        yield* verdict()
        yield* confirmTotals(check, notes, options)
        return yield* decideCaps(check, options.expectedTotals, options.headroomPercent)
      })
  }).pipe(Effect.tapErrorTag("RunError", ({ reason }) =>
    Effect.gen(function*() {
      yield* verdict(reason._tag === "DuplicateIdentities" ? doubledTexts(options.file, reason.duplicates) : [])
      // All rows were left out, so that nobody has been told yet which and why.
      if (reason._tag === "NothingToCharge" && notes.refusedRows > 0) yield* note(skippedText(notes))
    })))
})
