/** Bytes of one file in, entries out: the decoder, the scanner and the rows of a format put together. */
import { makeCsvRows } from "./CsvRows.ts"
import { makeCsvScanner } from "./CsvScanner.ts"
import { type InputErrorReason, NothingToCharge, NotText } from "./InputError.ts"
import type { InputOptions } from "./InputOptions.ts"
import { cutCell, InputRefusal } from "./InputRefusal.ts"
import type { InputEntry } from "./InputRow.ts"
import { makeLineScanner } from "./LineScanner.ts"
import { makeNdjsonRows } from "./NdjsonRows.ts"
import type { RecordReader, Refuse } from "./RecordReader.ts"
import type { RecordScanner } from "./RecordScanner.ts"
import { makeUtf8Text, type TextPiece } from "./Utf8Text.ts"

/** The entries of one piece of a file, and what ended the reading after them. */
export interface ReadPiece {
  readonly entries: ReadonlyArray<InputEntry>
  readonly failure: InputErrorReason | undefined
}

/** A reader for one file. After a failure it is not used again. */
export interface InputReader {
  readonly push: (bytes: Uint8Array) => ReadPiece
  readonly end: () => ReadPiece
}

const isEntry = (value: InputEntry | InputErrorReason): value is InputEntry =>
  value._tag === "Row" || value._tag === "Refusal" || value._tag === "Blank"

const makeReader = <R>(scanner: RecordScanner<R>, rows: RecordReader<R>): InputReader => {
  const text = makeUtf8Text()
  let blankRows = 0
  let filledRows = 0

  const read = (piece: TextPiece, final: boolean): ReadPiece => {
    const entries: Array<InputEntry> = []
    const scanned = scanner.push(piece.text, final && piece.flaw === undefined)
    for (const record of scanned.records) {
      const entry = rows.read(record)
      if (entry === undefined) continue
      if (!isEntry(entry)) return { entries, failure: entry }
      if (entry._tag === "Blank") blankRows++
      else filledRows++
      entries.push(entry)
    }
    if (scanned.failure !== undefined) return { entries, failure: scanned.failure }
    if (piece.flaw !== undefined) return { entries, failure: new NotText({ kind: piece.flaw, line: scanner.line() }) }
    if (!final) return { entries, failure: undefined }
    return { entries, failure: filledRows === 0 ? new NothingToCharge({ blankRows }) : rows.end() }
  }

  return {
    push: (bytes) => read(text.push(bytes), false),
    end: () => read(text.end(), true)
  }
}

/** A reader of a format; `file` is the name that refusals carry. */
export const makeInputReader = (file: string, format: "csv" | "ndjson", options: InputOptions): InputReader => {
  const refuse: Refuse = ({ endLine, line }, at, cell, code, hint) =>
    new InputRefusal({
      file, line, endLine, column: at?.column ?? null, columnIndex: at?.index ?? null, cell: cutCell(cell), code, hint
    })
  return format === "csv"
    ? makeReader(makeCsvScanner(options.delimiter ?? ","), makeCsvRows(options, refuse))
    : makeReader(makeLineScanner(), makeNdjsonRows(options, refuse))
}
