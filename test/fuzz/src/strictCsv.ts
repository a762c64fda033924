/**
 * A second reader of CSV, by another way: one character after the other, without a look ahead. It knows RFC 4180 and nothing of
 * charges; whatever is not as the RFC writes it ends the reading.
 */

/** One record: where it begins, and its cells. */
export interface StrictRecord {
  readonly line: number
  readonly cells: ReadonlyArray<string>
}

/** The records up to the end, or to the first that is broken. */
export const strictCsv = (text: string, delimiter: string): ReadonlyArray<StrictRecord> => {
  const records: Array<StrictRecord> = []
  let cells: Array<string> = []
  let cell = ""
  let state: "start" | "bare" | "quoted" | "closed" = "start"
  let line = 1
  let begun = 1
  let previous = ""
  const endCell = () => {
    cells.push(cell)
    cell = ""
    state = "start"
  }
  const endRecord = () => {
    endCell()
    records.push({ line: begun, cells })
    cells = []
  }
  for (const character of text) {
    const isFeedOfReturn = character === "\n" && previous === "\r"
    previous = character
    const isBreak = character === "\n" || character === "\r"
    if (isBreak && !isFeedOfReturn) line++
    if (state === "quoted") {
      if (character === "\"") state = "closed"
      else cell += character
      continue
    }
    if (isFeedOfReturn && state === "start" && cells.length === 0) {
      begun = line
      continue
    }
    if (state === "closed" && character === "\"") {
      cell += "\""
      state = "quoted"
    } else if (character === delimiter) endCell()
    else if (isBreak) {
      endRecord()
      begun = line
    } else if (state === "closed" || character === "\"" && state === "bare") return records
    else if (character === "\"") state = "quoted"
    else {
      cell += character
      state = "bare"
    }
  }
  // What follows the last break is a record only when something does, and only when its quote is closed.
  if (state !== "quoted" && (cells.length > 0 || cell !== "" || state === "closed")) endRecord()
  return records
}
