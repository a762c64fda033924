/** Files as billing people really have them, and what must be read from each. */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { InputFile } from "../../src/input/InputFile.ts"
import type { InputOptions } from "../../src/input/InputOptions.ts"
import { drain, refusalsOf, rowsOf, shorts } from "./support.ts"

const fixture = (name: string, options?: InputOptions) =>
  drain(InputFile.rows(`${import.meta.dirname}/fixtures/${name}.csv`, options))

const cases: ReadonlyArray<readonly [behaviour: string, file: string, options: InputOptions, expected: ReadonlyArray<string>]> = [
  ["strips a byte-order mark", "A1-bom", {}, ["2 acme 2026-07 1250 usd base"]],
  ["reads the same row without the mark", "A1-nobom", {}, ["2 acme 2026-07 1250 usd base"]],
  ["refuses semicolons that were not declared", "A3-semicolon", {}, ["error HeaderRefused"]],
  ["refuses a decimal comma that was not declared", "A3-semicolon", { delimiter: ";" }, ["2 refused amount#3 NotANumber"]],
  ["reads a declared dialect", "A3-semicolon", { delimiter: ";", decimalMark: "," }, ["2 acme 2026-07 1000 eur base"]],
  ["refuses a line break inside an id, with both lines", "A5-badid", {}, ["2-3 refused customer_id#1 InvalidId"]],
  ["takes a line break inside a note as data", "A5-quoted", {}, ["2 acme 2026-07 1250 usd base", "4 beta 2026-07 1000 usd base"]],
  ["finds nothing to charge in an empty file", "A7-empty", {}, ["error NothingToCharge"]],
  ["finds nothing to charge under a header", "A7-headeronly", {}, ["error NothingToCharge"]],
  ["counts blank rows and the last row without a newline", "A7-tail", {}, [
    "2 acme 2026-07 1000 usd base", "3 beta 2026-07 1000 usd base", "4 blank", "5 blank", "6 blank", "7 gamma 2026-07 1000 usd base"
  ]],
  ["charges yen as yen and refuses their decimals", "B1-jpy", {}, ["2 acme 2026-07 5000 jpy base", "3 refused amount#3 TooManyDigits"]],
  ["reads decimals exactly", "B3-float", {}, [
    "2 c1 2026-07 1999 usd base", "3 c2 2026-07 820 usd base", "4 c3 2026-07 6796 usd base", "5 c4 2026-07 52256 usd base",
    "6 refused amount#3 TooManyDigits"
  ]],
  ["refuses brackets, signs, symbols, spaces and grouping", "B5-forms", {}, [2, 3, 4, 5, 6, 7].map((line) => `${line} refused amount#3 NotANumber`)],
  ["refuses amounts over the ceiling", "B7-huge", {}, ["2 refused amount#3 AboveMaximum", "3 refused amount#3 AboveMaximum"]],
  ["takes a raised ceiling without wrapping at 32 bits", "B7-huge", { maximumMinor: 999_999_999_999 }, [
    "2 acme 2026-07 100000000 usd base", "3 beta 2026-07 2147483648 idr base"
  ]],
  ["reads cents as units, for the cap to stop", "B7-cents", {}, ["2 acme 2026-07 199900 usd base"]],
  ["keeps ids as they are and refuses outer blanks", "C1-ids", {}, [
    "2 x:1 2026-07 1000 usd 2", "3 x 2026-07 1000 usd 1:2", "4 auth0|u1 2026-07 1000 usd base", "5 auth0u1 2026-07 1000 usd base",
    "6 00042 2026-07 1000 usd base", "7 42 2026-07 1000 usd base", "8 refused customer_id#1 InvalidId", "9 acme 2026-07 1000 usd base"
  ]],
  ["reads one period from three spellings and refuses the impossible ones", "D1-quarter", {}, [
    "2 acme Q3-2026 1000 usd base", "3 acme Q3-2026 1000 usd base", "4 acme Q3-2026 1000 usd base",
    "5 refused billing_period#2 InvalidPeriod", "6 refused billing_period#2 InvalidPeriod", "7 refused billing_period#2 InvalidPeriod"
  ]],
  ["refuses a leap day that does not exist", "D3-leap", {}, [
    "2 acme 2028-02-29/2028-03-28 1000 usd base", "3 refused billing_period#2 InvalidPeriod", "4 gamma 2026-01-31/2026-02-27 1000 usd base"
  ]]
]

layer(NodeServices.layer)("files from the field", (it) => {
  for (const [behaviour, file, options, expected] of cases) {
    it.effect(`${behaviour} (${file})`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(shorts(yield* fixture(file, options)), expected)
      }))
  }

  it.effect("gives one key to the file with and without a byte-order mark", () =>
    Effect.gen(function*() {
      const [marked, bare] = [rowsOf(yield* fixture("A1-bom")), rowsOf(yield* fixture("A1-nobom"))]
      assert.deepStrictEqual(marked, bare)
    }))

  it.effect("gives six keys to six ids that a careless join would mix up", () =>
    Effect.gen(function*() {
      const keys = rowsOf(yield* fixture("C1-ids")).slice(0, 6).map((row) => row.chargeKey)
      assert.strictEqual(new Set(keys).size, 6)
    }))

  it.effect("gives equal rows one key and their items two", () =>
    Effect.gen(function*() {
      const keys = (rows: ReadonlyArray<{ readonly chargeKey: string }>) => new Set(rows.map((row) => row.chargeKey)).size
      assert.strictEqual(keys(rowsOf(yield* fixture("C3-same"))), 1)
      assert.strictEqual(keys(rowsOf(yield* fixture("C3-addon"))), 2)
    }))

  it.effect("names the offending cell of every refusal", () =>
    Effect.gen(function*() {
      const cells = refusalsOf(yield* fixture("B5-forms")).map((refusal) => refusal.cell)
      assert.deepStrictEqual(cells, ["($30.00)", "30.00-", "$30.00", "12,50\u00a0€", "1\u202f234.50", "1'234.50"])
    }))
})

describe("cases", () => {
  layer(NodeServices.layer)("paths", (it) => {
    it.effect("tells a missing file and a directory apart", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(shorts(yield* fixture("no-such-file")), ["error FileNotFound"])
        assert.deepStrictEqual(shorts(yield* drain(InputFile.rows(import.meta.dirname))), ["error NotAFile"])
      }))
  })
})
