import { assert, describe, it } from "@effect/vitest"
import { parse } from "csv-parse/sync"
import { Arbitrary, Schema } from "effect"
import { type CsvRecord, makeCsvScanner } from "../../src/input/CsvScanner.ts"
import { type Delimiter, delimiters } from "../../src/input/InputOptions.ts"

const scan = (text: string, delimiter: Delimiter, lengths: ReadonlyArray<number>) => {
  const scanner = makeCsvScanner(delimiter)
  const records: Array<CsvRecord> = []
  let at = 0
  for (let turn = 0; at < text.length; turn++) {
    let end = at + (lengths[turn % lengths.length] ?? text.length)
    // The decoder never ends a piece with a CR whose line feed may follow.
    if (text[end - 1] === "\r") end++
    records.push(...scanner.push(text.slice(at, end), false).records)
    at = end
  }
  const last = scanner.push("", true)
  records.push(...last.records)
  return { records, failure: last.failure }
}

const piece = Schema.Literals(["a", "é", "😀", " ", ",", ";", "\t", "\"", "\n", "\r\n", "\r", "0.10", "'"])
const cell = Arbitrary.map(Arbitrary.array(Arbitrary.schema(piece), { maxLength: 6 }), (pieces) => pieces.join(""))
const table = Arbitrary.array(Arbitrary.array(cell, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 6 })
const delimiter = Schema.Literals(delimiters)
const lineEnd = Schema.Literals(["\n", "\r\n", "\r"])
const lengths = Arbitrary.array(Arbitrary.schema(Schema.Int.pipe(Schema.check(Schema.isBetween({ minimum: 1, maximum: 4 })))), { minLength: 1, maxLength: 3 })

const mustQuote = (text: string, mark: string) => text.includes("\"") || text.includes("\n") || text.includes("\r") || text.includes(mark)
const written = (text: string, mark: string, always: boolean) =>
  always || mustQuote(text, mark) ? `"${text.replaceAll("\"", "\"\"")}"` : text
const breaks = (text: string) => text.match(/\r\n|\r|\n/g)?.length ?? 0

describe("CsvScanner", () => {
  it.prop("gives back what was written, with physical lines, wherever the text is cut", [table, delimiter, lineEnd, lengths, Schema.Boolean], ([rows, mark, end, cuts, always]) => {
    let line = 1
    const expected = rows.map((cells) => {
      const endLine = line + cells.reduce((sum, text) => sum + breaks(text), 0)
      const record = { line, endLine, cells }
      line = endLine + 1
      return record
    })
    const text = rows.map((cells) => cells.map((value) => written(value, mark, always)).join(mark) + end).join("")
    assert.deepStrictEqual(scan(text, mark, cuts), { records: expected, failure: undefined })
    assert.deepStrictEqual(scan(text, mark, []), { records: expected, failure: undefined })
  }, { arbitrary: { runs: 500 } })

  it.prop("agrees with csv-parse about every text, also about which are broken", [cell, cell, cell, delimiter], ([a, b, c, mark]) => {
    const text = a + mark + b + "\n" + c
    const { failure, records } = scan(text, mark, [])
    let theirs: ReadonlyArray<ReadonlyArray<string>> | undefined
    try {
      theirs = parse(text, { delimiter: mark, record_delimiter: ["\r\n", "\n", "\r"], relax_column_count: true })
    } catch {
      theirs = undefined
    }
    // A cell that is empty at the very end of a text without a last newline is a matter of taste: csv-parse sees no row there.
    const ours = failure === undefined ? records.map(({ cells }) => cells) : undefined
    assert.deepStrictEqual(ours, theirs)
  }, { arbitrary: { runs: 500 } })
})
