/** Text to physical lines, for NDJSON. CRLF, LF and a lone CR end a line. */
import { RowTooLarge } from "./InputError.ts"
import { maximumRowLength } from "./InputOptions.ts"
import { afterBreak, countBreaks, find, type RecordScanner } from "./RecordScanner.ts"

/** One line without its break. */
export interface LineRecord {
  readonly line: number
  readonly text: string
}

/** A scanner in its first state. */
export const makeLineScanner = (): RecordScanner<LineRecord> => {
  let rest = ""
  let line = 1
  return {
    push: (piece, final) => {
      const text = rest === "" ? piece : rest + piece
      const records: Array<LineRecord> = []
      let at = 0
      let feed = -1
      let turn = -1
      while (at < text.length) {
        if (feed < at) feed = find(text, "\n", at)
        if (turn < at) turn = find(text, "\r", at)
        const end = Math.min(feed, turn, text.length)
        if (end - at > maximumRowLength) {
          rest = text.slice(at)
          return { records, failure: new RowTooLarge({ line, limit: maximumRowLength }) }
        }
        if (end === text.length && !final) break
        records.push({ line, text: text.slice(at, end) })
        if (end === text.length) at = end
        else {
          at = afterBreak(text, end)
          line++
        }
      }
      rest = text.slice(at)
      return { records, failure: undefined }
    },
    line: () => line + countBreaks(rest, 0, rest.length)
  }
}
