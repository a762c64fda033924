/**
 * One JSON object per line to entries. `amount` is a string, because a JSON number is a float to every reader;
 * `amount_minor` is a string of digits or an integer, taken as it was written.
 */
import { Result } from "effect"
import { HeaderRefused, type InputErrorReason } from "./InputError.ts"
import { type Cells, type Column, columnLike, columnNamed, type InputOptions } from "./InputOptions.ts"
import { type JsonField, jsonFields } from "./JsonFields.ts"
import type { LineRecord } from "./LineScanner.ts"
import { quoted } from "./quoted.ts"
import type { RecordReader, Refuse } from "./RecordReader.ts"
import { makeRowReader } from "./RowReader.ts"

const wrongType = (column: Column) =>
  column === "amount"
    ? "must be a JSON string such as \"19.99\": a JSON number is a float and may lose cents"
    : column === "amount_minor"
    ? "must be an integer of minor units, or a string of its digits"
    : "must be a JSON string"

/** The text of a field, `undefined` when it is absent, `null` when it has the wrong type. */
const cellOf = (column: Column, field: JsonField): string | undefined | null => {
  if (field.value === null || field.value === "") return undefined
  if (typeof field.value === "string") return field.value
  return column === "amount_minor" && typeof field.value === "number" ? field.source : null
}

/** Reads the lines of one file. */
export const makeNdjsonRows = (options: InputOptions, refuse: Refuse): RecordReader<LineRecord> => {
  const readRow = makeRowReader(options)
  const unseen = new Set(options.map?.keys() ?? [])

  return {
    end: (): InputErrorReason | undefined =>
      unseen.size === 0 ? undefined : new HeaderRefused({
        line: 1,
        problem: "UnknownMapping",
        columns: [...unseen],
        hint: `--map names fields that no row has: ${[...unseen].map(quoted).join(", ")}`
      }),
    read: ({ line, text }) => {
      if (text.trim() === "") return { _tag: "Blank", line }
      const lines = { line, endLine: line }
      const fields = jsonFields(text)
      if (Result.isFailure(fields)) {
        return refuse(lines, null, text, fields.failure,
          fields.failure === "NotJson" ? "is not JSON; one object per line is expected" : "is not a JSON object")
      }
      const cells: Cells = {}
      const strangers: Array<string> = []
      for (const field of fields.success) {
        const mapped = options.map?.get(field.key)
        if (mapped !== undefined) unseen.delete(field.key)
        const column = mapped ?? columnNamed(field.key)
        if (column === undefined) {
          strangers.push(field.key)
          continue
        }
        const at = { column, index: null }
        if (column in cells) return refuse(lines, at, field.source, "DuplicateField", "stands twice in this object")
        const cell = cellOf(column, field)
        if (cell === null) return refuse(lines, at, field.source, "WrongType", wrongType(column))
        cells[column] = cell
      }
      for (const name of strangers) {
        const column = columnLike(name)
        if (column !== undefined && !(column in cells)) {
          return refuse(lines, { column, index: null }, name, "MisspeltField",
            `is not ${column}: names of fields are exact (--map ${quoted(`${name}=${column}`)})`)
        }
      }
      const row = readRow(line, cells)
      return Result.isSuccess(row)
        ? row.success
        : refuse(lines, { column: row.failure.column, index: null }, row.failure.cell, row.failure.code, row.failure.hint)
    }
  }
}
