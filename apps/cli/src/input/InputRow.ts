/** What reading a billing file yields: rows that can be charged, rows that are refused, and rows that are blank. */
import type { RunRow } from "@purser/core"
import type { InputRefusal } from "./InputRefusal.ts"

/** A row that can be charged: its first physical line, its request and the key of its identity. */
export interface InputRow extends RunRow {
  readonly _tag: "Row"
}

/** A row without content: no character, only delimiters, or only spaces. */
export interface BlankRow {
  readonly _tag: "Blank"
  readonly line: number
}

/** One element of the stream, in file order. */
export type InputEntry = InputRow | InputRefusal | BlankRow
