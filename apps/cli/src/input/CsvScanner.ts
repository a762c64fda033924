/**
 * CSV text to records, after RFC 4180 without its tolerances: a quote may only open a cell or stand doubled in a quoted one.
 *
 * Why not a library: a refusal must name the physical line, and `csv-parse` counts a CRLF inside quotes as two lines.
 * It is the oracle of this module's tests instead.
 */
import { BrokenQuotes, type InputErrorReason, RowTooLarge } from "./InputError.ts"
import { type Delimiter, maximumRowLength } from "./InputOptions.ts"
import { afterBreak, countBreaks, find, type RecordScanner } from "./RecordScanner.ts"

/** The cells of one row and its first and last physical line. */
export interface CsvRecord {
  readonly line: number
  readonly endLine: number
  readonly cells: ReadonlyArray<string>
}

type QuotedRow =
  | { readonly _tag: "Row"; readonly cells: ReadonlyArray<string>; readonly end: number; readonly endLine: number }
  | { readonly _tag: "Open"; readonly line: number; readonly columnIndex: number }
  | { readonly _tag: "Stray"; readonly at: number; readonly line: number; readonly columnIndex: number }

/** The index after the closing quote of the cell that opens at `open`, or -1 when the text ends before it. */
const closeQuote = (text: string, open: number): number => {
  for (let at = text.indexOf("\"", open + 1); at >= 0; at = text.indexOf("\"", at + 2)) {
    if (text.charCodeAt(at + 1) !== 34) return at + 1
  }
  return -1
}

/** Reads a row that has a quote in it. `end` is where its line break stands, or the end of the text. */
const readQuotedRow = (text: string, start: number, startLine: number, delimiter: Delimiter, final: boolean): QuotedRow => {
  const cells: Array<string> = []
  let line = startLine
  let at = start
  for (;;) {
    let end: number
    if (text.charCodeAt(at) === 34) {
      end = closeQuote(text, at)
      if (end < 0) return { _tag: "Open", line, columnIndex: cells.length + 1 }
      cells.push(text.slice(at + 1, end - 1).replaceAll("\"\"", "\""))
      line += countBreaks(text, at, end)
    } else {
      end = at
      for (; end < text.length; end++) {
        const code = text.charCodeAt(end)
        if (code === 10 || code === 13 || text[end] === delimiter) break
        if (code === 34) return { _tag: "Stray", at: end, line, columnIndex: cells.length + 1 }
      }
      cells.push(text.slice(at, end))
    }
    // At the end of a piece even a closing quote is not sure: its double may follow.
    if (end >= text.length) {
      return final ? { _tag: "Row", cells, end, endLine: line } : { _tag: "Open", line, columnIndex: cells.length }
    }
    const code = text.charCodeAt(end)
    if (code === 10 || code === 13) return { _tag: "Row", cells, end, endLine: line }
    if (text[end] !== delimiter) return { _tag: "Stray", at: end, line, columnIndex: cells.length }
    at = end + 1
  }
}

/** A scanner in its first state. */
export const makeCsvScanner = (delimiter: Delimiter): RecordScanner<CsvRecord> => {
  let rest = ""
  let line = 1

  const push: RecordScanner<CsvRecord>["push"] = (piece, final) => {
    const text = rest === "" ? piece : rest + piece
    const records: Array<CsvRecord> = []
    let at = 0
    let feed = find(text, "\n", 0)
    let turn = find(text, "\r", 0)
    let quote = find(text, "\"", 0)
    const stop = (failure: InputErrorReason | undefined) => {
      rest = text.slice(at)
      return { records, failure }
    }
    const tooLarge = () => stop(new RowTooLarge({ line, limit: maximumRowLength }))

    while (at < text.length) {
      if (feed < at) feed = find(text, "\n", at)
      if (turn < at) turn = find(text, "\r", at)
      if (quote < at) quote = find(text, "\"", at)
      let end = Math.min(feed, turn, text.length)
      if (quote > end || quote === Number.POSITIVE_INFINITY) {
        if (end - at > maximumRowLength) return tooLarge()
        if (end === text.length && !final) break
        records.push({ line, endLine: line, cells: text.slice(at, end).split(delimiter) })
      } else {
        const row = readQuotedRow(text, at, line, delimiter, final)
        if ((row._tag === "Row" ? row.end : row._tag === "Stray" ? row.at : text.length) - at > maximumRowLength) return tooLarge()
        if (row._tag === "Stray") return stop(new BrokenQuotes({ problem: "Stray", line: row.line, columnIndex: row.columnIndex }))
        if (row._tag === "Open") {
          if (!final) break
          return stop(new BrokenQuotes({ problem: "Unclosed", line: row.line, columnIndex: row.columnIndex }))
        }
        records.push({ line, endLine: row.endLine, cells: row.cells })
        line = row.endLine
        end = row.end
      }
      if (end === text.length) at = end
      else {
        at = afterBreak(text, end)
        line++
      }
    }
    return stop(undefined)
  }

  return { push, line: () => line + countBreaks(rest, 0, rest.length) }
}
