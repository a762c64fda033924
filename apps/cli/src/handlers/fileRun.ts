/** Runs whose rows are a billing file that every runner can read: the definition `file`. */
import { RunDefinition } from "@purser/engine"
import { type FileSystem, Schema, type Stdio } from "effect"
import { type InputOptions, columns } from "../input/InputOptions.ts"
import { noNotes, runRows } from "./runInput.ts"

/** What the definition is told. */
export const FileParams = Schema.Struct({
  path: Schema.NonEmptyString,
  format: Schema.optionalKey(Schema.Literals(["csv", "ndjson"])),
  delimiter: Schema.optionalKey(Schema.Literals([",", ";", "\t"])),
  decimalMark: Schema.optionalKey(Schema.Literals([".", ","])),
  map: Schema.optionalKey(Schema.Record(Schema.String, Schema.Literals(columns))),
  skipInvalid: Schema.optionalKey(Schema.Boolean),
  allowPeriods: Schema.optionalKey(Schema.Array(Schema.String)),
  /** The local time of the schedule that started the run. */
  at: Schema.optionalKey(Schema.String)
})

const two = (value: number) => String(value).padStart(2, "0")

/** `{yyyy}`, `{mm}` and `{dd}` are the day of the schedule, `{period}` is the month before it. */
export const pathAt = (path: string, at: string | undefined): string => {
  if (at === undefined) return path
  const [year, month, day] = at.slice(0, 10).split("-").map(Number) as [number, number, number]
  const before = month === 1 ? `${year - 1}-12` : `${year}-${two(month - 1)}`
  return path.replaceAll("{yyyy}", String(year)).replaceAll("{mm}", two(month)).replaceAll("{dd}", two(day)).replaceAll("{period}", before)
}

const inputOf = (params: typeof FileParams.Type): InputOptions => ({
  format: params.format,
  delimiter: params.delimiter ?? ",",
  decimalMark: params.decimalMark ?? ".",
  map: new Map(Object.entries(params.map ?? {})),
  periodLabels: "calendar",
  onlyPeriod: undefined,
  maximumMinor: undefined,
  defaultCurrency: undefined
})

/** The definition. */
export const fileRun: RunDefinition<FileSystem.FileSystem | Stdio.Stdio> = RunDefinition.rows("file", {
  params: FileParams,
  rows: (params) =>
    runRows(
      pathAt(params.path, params.at),
      { ...inputOf(params), skipInvalid: params.skipInvalid ?? false, allowPeriods: new Set(params.allowPeriods ?? []) },
      noNotes()
    )
})
