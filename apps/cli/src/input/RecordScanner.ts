/** What the scanners of both formats have in common: text in, records with their physical lines out. */
import type { InputErrorReason } from "./InputError.ts"

/** The records of one piece of text, and what ended the scan after them. */
export interface Scanned<R> {
  readonly records: ReadonlyArray<R>
  readonly failure: InputErrorReason | undefined
}

/** A scanner for one file. After a failure it is not used again. */
export interface RecordScanner<R> {
  /** Takes the next piece of text; `final` says that nothing follows. */
  readonly push: (text: string, final: boolean) => Scanned<R>
  /** The physical line that the next character will be on. */
  readonly line: () => number
}

/** Line breaks in a part of a text: CRLF, LF and a lone CR are one each. */
export const countBreaks = (text: string, from: number, to: number): number => {
  let breaks = 0
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at)
    if (code === 10 || (code === 13 && text.charCodeAt(at + 1) !== 10)) breaks++
  }
  return breaks
}

/** Index of `search` from `from` on, or infinity, so that positions can be compared. */
export const find = (text: string, search: string, from: number): number => {
  const at = text.indexOf(search, from)
  return at < 0 ? Number.POSITIVE_INFINITY : at
}

/** Where the text after the line break at `at` begins. */
export const afterBreak = (text: string, at: number): number =>
  at + (text.charCodeAt(at) === 13 && text.charCodeAt(at + 1) === 10 ? 2 : 1)
