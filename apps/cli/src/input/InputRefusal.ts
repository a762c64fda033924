/**
 * Why one row of a billing file cannot be charged. A refusal is a value of the stream, not its end, so that a person
 * sees every bad row of a file at once.
 */
import { Schema } from "effect"
import { quoted } from "./quoted.ts"

/** What is wrong with a row. */
export const RefusalCode = Schema.Literals([
  "CellCount", "EmptyCell", "InvalidId", "InvalidPeriod", "WrongPeriod", "InvalidCurrency", "NotANumber",
  "TooManyDigits", "NotPositive", "BelowMinimum", "AboveMaximum", "NotAMultiple", "BothAmounts", "NotJson",
  "NotAnObject", "DuplicateField", "MisspeltField", "WrongType"
])
export type RefusalCode = typeof RefusalCode.Type

/**
 * One refused row. `line` and `endLine` are physical lines from 1; `columnIndex` counts from 1 and is null in NDJSON;
 * `column` is null when the row as a whole is refused; `cell` is cut to 80 characters.
 */
export class InputRefusal extends Schema.TaggedClass<InputRefusal>("@purser/cli/input/InputRefusal")("Refusal", {
  file: Schema.String,
  line: Schema.Int,
  endLine: Schema.Int,
  column: Schema.NullOr(Schema.String),
  columnIndex: Schema.NullOr(Schema.Int),
  cell: Schema.String,
  code: RefusalCode,
  hint: Schema.String
}) {
  /** The refusal as one line for a person; the cell's control characters are escaped. */
  get message(): string {
    const lines = this.line === this.endLine ? `line ${this.line}` : `lines ${this.line}-${this.endLine}`
    const column = this.column === null ? "" : `, column ${this.column}${this.columnIndex === null ? "" : ` (${this.columnIndex})`}`
    return `${this.file}: ${lines}${column}: ${quoted(this.cell)}: ${this.hint}`
  }
}

const cellLimit = 80

/** A cell cut to 80 characters, never through the middle of a surrogate pair. */
export const cutCell = (cell: string): string =>
  cell.length <= cellLimit ? cell : `${cell.slice(0, cellLimit - 1).replace(/[\uD800-\uDBFF]$/, "")}…`
