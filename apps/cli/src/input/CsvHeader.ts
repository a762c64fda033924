/** The header row of a CSV file: which of its cells is which of our columns. Names are exact; `map` renames theirs. */
import { Result } from "effect"
import type { CsvRecord } from "./CsvScanner.ts"
import { HeaderRefused } from "./InputError.ts"
import { type Column, columnLike, columnNamed, delimiters, type InputOptions } from "./InputOptions.ts"
import { quoted } from "./quoted.ts"

/** Where each column stands, from 0, and how many cells a row must have. */
export interface CsvHeader {
  readonly width: number
  readonly positions: ReadonlyMap<Column, number>
}

const list = (names: ReadonlyArray<string>) => names.map(quoted).join(", ")
const delimiterNames = { ",": "','", ";": "';'", "\t": "tab" } as const

const requiredColumns = (options: InputOptions): ReadonlyArray<Column> => [
  "customer_id",
  "billing_period",
  ...(options.defaultCurrency === undefined ? ["currency" as const] : []),
  "stripe_customer_id"
]

/** The header of a record, or why no row below it could be understood. */
export const readHeader = (record: CsvRecord, options: InputOptions): Result.Result<CsvHeader, HeaderRefused> => {
  const refuse = (problem: HeaderRefused["problem"], columns: ReadonlyArray<string>, hint: string) =>
    Result.fail(new HeaderRefused({ line: record.line, problem, columns, hint }))

  const found = new Map<Column, number>()
  const duplicates = new Set<string>()
  const strangers: Array<string> = []
  record.cells.forEach((name, index) => {
    const column = options.map?.get(name) ?? columnNamed(name)
    if (column === undefined) strangers.push(name)
    else if (found.has(column)) duplicates.add(column)
    else found.set(column, index)
  })

  const [only] = record.cells
  if (record.cells.length === 1 && only !== undefined) {
    const other = delimiters.find((delimiter) => delimiter !== (options.delimiter ?? ",") && only.includes(delimiter))
    if (other !== undefined) {
      return refuse("WrongDelimiter", [only.slice(0, 80)],
        `the header is one column that contains ${delimiterNames[other]}; declare it with --delimiter ${
          other === "\t" ? "tab" : `"${other}"`
        }${other === ";" ? " (and --decimal \",\" if amounts are written so)" : ""}`)
    }
  }
  const unmapped = [...options.map?.keys() ?? []].filter((theirs) => !record.cells.includes(theirs))
  if (unmapped.length > 0) {
    return refuse("UnknownMapping", unmapped, `--map names columns that the header does not have: ${list(unmapped)}`)
  }
  if (duplicates.size > 0) {
    return refuse("DuplicateColumns", [...duplicates], `columns that stand twice in the header: ${list([...duplicates])}`)
  }
  const misspelt = strangers.flatMap((name) => {
    const column = columnLike(name)
    return column === undefined || found.has(column) ? [] : [[name, column] as const]
  })
  if (misspelt.length > 0) {
    return refuse("MisspeltColumns", misspelt.map(([name]) => name),
      `names of columns are exact: ${misspelt.map(([name, column]) => `${quoted(name)} is not ${column} (--map ${quoted(`${name}=${column}`)})`).join(", ")}`)
  }
  const missing: Array<string> = requiredColumns(options).filter((column) => !found.has(column))
  if (!found.has("amount") && !found.has("amount_minor")) missing.push("amount or amount_minor")
  if (missing.length > 0) {
    return refuse("MissingColumns", missing, `columns that are missing: ${missing.join(", ")}`)
  }
  if (found.has("amount") && found.has("amount_minor")) {
    return refuse("BothAmounts", ["amount", "amount_minor"], "a file has amount or amount_minor, never both")
  }
  return Result.succeed({ width: record.cells.length, positions: found })
}
