/**
 * How a billing file is written: its format, its dialect and the names of its columns.
 *
 * Everything here is declared by the caller. Nothing is guessed from the content: a wrong guess of a delimiter or a
 * decimal mark would change an amount.
 */
import { type BillingPeriod, type Currency, type PeriodOptions } from "@purser/core"

/** The columns that a file may have, in the order in which they are documented. */
export const columns = [
  "customer_id",
  "billing_period",
  "amount",
  "amount_minor",
  "currency",
  "stripe_customer_id",
  "payment_method",
  "item",
  "namespace"
] as const
export type Column = typeof columns[number]

/** The cells of one row by column; an empty or absent cell is `undefined`. */
export type Cells = { [K in Column]?: string | undefined }

/** The characters that may stand between the cells of a CSV file. */
export const delimiters = [",", ";", "\t"] as const
export type Delimiter = typeof delimiters[number]

/** How the file is to be read. Every part has a default. */
export interface InputOptions {
  /** `ndjson` for `.ndjson` and `.jsonl`, else `csv`. */
  readonly format?: "csv" | "ndjson" | undefined
  /** Between cells; `,` unless declared. */
  readonly delimiter?: Delimiter | undefined
  /** Between units and decimals of `amount`; `.` unless declared. */
  readonly decimalMark?: "." | "," | undefined
  /** Their column name to ours. */
  readonly map?: ReadonlyMap<string, Column> | undefined
  /** Whether free period labels are taken; `calendar` unless declared. */
  readonly periodLabels?: PeriodOptions["labels"] | undefined
  /** Rows of any other period are refused. */
  readonly onlyPeriod?: BillingPeriod | undefined
  /** The largest amount of one row in minor units. */
  readonly maximumMinor?: number | undefined
  /** The currency of a file that has no `currency` column. */
  readonly defaultCurrency?: Currency | undefined
  /** The namespace of rows that name none. */
  readonly namespace?: string | undefined
}

/** A row's text may be this long, in UTF-16 units; what is longer is a sign of a quote that was never closed. */
export const maximumRowLength = 1_048_576

/** The format that a path or an option names. */
export const formatOf = (path: string, options: InputOptions): "csv" | "ndjson" =>
  options.format ?? (/\.(ndjson|jsonl)$/i.test(path) ? "ndjson" : "csv")

const plain = (name: string) => name.toLowerCase().replace(/[^a-z0-9]/g, "")
const columnsByPlainName = new Map(columns.map((column) => [plain(column), column]))

/** Our column of this exact name, if there is one. */
export const columnNamed = (name: string): Column | undefined => columns.find((column) => column === name)

/** Our column that a name was probably meant to be: `Customer ID` for `customer_id`. */
export const columnLike = (name: string): Column | undefined => columnsByPlainName.get(plain(name))
