import { assert, describe, it } from "@effect/vitest"
import type { Currency } from "@purser/core"
import { Effect, Result, Schema } from "effect"
import type { InputOptions } from "../../src/input/InputOptions.ts"
import { jsonFields } from "../../src/input/JsonFields.ts"
import { read, readNdjson, refusalsOf, shorts } from "./support.ts"

const rest = `"billing_period":"2026-07","currency":"usd","stripe_customer_id":"cus_T001"`
const ok = "1 acme 2026-07 1250 usd -"

const lines: ReadonlyArray<readonly [behaviour: string, line: string, options: InputOptions, expected: string]> = [
  ["reads an amount as a string", `{"customer_id":"acme","amount":"12.50",${rest}}`, {}, ok],
  ["refuses an amount as a number, whole or not", `{"customer_id":"acme","amount":12,${rest}}`, {}, "1 refused amount WrongType"],
  ["refuses an amount as a fraction", `{"customer_id":"acme","amount":12.50,${rest}}`, {}, "1 refused amount WrongType"],
  ["reads minor units as a number", `{"customer_id":"acme","amount_minor":1250,${rest}}`, {}, ok],
  ["reads minor units as digits", `{"customer_id":"acme","amount_minor":"1250",${rest}}`, {}, ok],
  ["refuses minor units with a fraction that a float would lose", `{"customer_id":"acme","amount_minor":1250.0000000000000001,${rest}}`, {}, "1 refused amount_minor NotANumber"],
  ["refuses minor units with an exponent", `{"customer_id":"acme","amount_minor":1e3,${rest}}`, {}, "1 refused amount_minor NotANumber"],
  ["refuses minor units beyond the ceiling, digit by digit", `{"customer_id":"acme","amount_minor":9007199254740993,${rest}}`, {}, "1 refused amount_minor AboveMaximum"],
  ["refuses negative minor units", `{"customer_id":"acme","amount_minor":-1250,${rest}}`, {}, "1 refused amount_minor NotANumber"],
  ["refuses both amounts", `{"customer_id":"acme","amount":"12.50","amount_minor":1250,${rest}}`, {}, "1 refused amount_minor BothAmounts"],
  ["refuses no amount", `{"customer_id":"acme",${rest}}`, {}, "1 refused amount EmptyCell"],
  ["refuses an id that is a number", `{"customer_id":42,"amount":"12.50",${rest}}`, {}, "1 refused customer_id WrongType"],
  ["refuses an id that is an object", `{"customer_id":{"a":[1,"}"]},"amount":"12.50",${rest}}`, {}, "1 refused customer_id WrongType"],
  ["takes null as absent", `{"customer_id":"acme","item":null,"amount":"12.50",${rest}}`, {}, ok],
  ["refuses a null that is required", `{"customer_id":null,"amount":"12.50",${rest}}`, {}, "1 refused customer_id EmptyCell"],
  ["refuses equal keys", `{"customer_id":"acme","customer_id":"beta","amount":"12.50",${rest}}`, {}, "1 refused customer_id DuplicateField"],
  ["refuses equal keys of which one is escaped", `{"customer_id":"acme","customer\\u005fid":"beta","amount":"12.50",${rest}}`, {}, "1 refused customer_id DuplicateField"],
  ["ignores fields that it does not know, at any depth", `{"note":{"customer_id":"x","l":[{"amount":1},"]"]},"customer_id":"acme","amount":"12.50",${rest}}`, {}, ok],
  ["refuses a name that is nearly ours", `{"customer_id":"acme","amount":"12.50","Item":"base",${rest}}`, {}, "1 refused item MisspeltField"],
  ["refuses a line that is not JSON", `{"customer_id":"acme"`, {}, "1 refused row NotJson"],
  ["refuses two objects on a line", `{}{}`, {}, "1 refused row NotJson"],
  ["refuses an array", `["acme"]`, {}, "1 refused row NotAnObject"],
  ["refuses null", `null`, {}, "1 refused row NotAnObject"],
  ["reads mapped fields", `{"kunde":"acme","amount":"12.50",${rest}}`, { map: new Map([["kunde", "customer_id"]]) }, ok],
  ["uses the default currency", `{"customer_id":"acme","amount":"12.50","billing_period":"2026-07","stripe_customer_id":"c"}`, { defaultCurrency: "usd" as Currency }, ok],
  ["reads a declared decimal comma", `{"customer_id":"acme","amount":"12,50",${rest}}`, { decimalMark: "," }, ok]
]

describe("NDJSON", () => {
  for (const [behaviour, line, options, expected] of lines) {
    it.effect(behaviour, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(shorts(yield* readNdjson(line, options)), [expected])
      }))
  }

  const good = `{"customer_id":"acme","amount":"12.50",${rest}}`

  it.effect("goes on after a bad line and counts blank ones", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(shorts(yield* readNdjson(`${good}\r\n{\r\n  \r\n${good}`)), [
        "1 acme 2026-07 1250 usd -", "2 refused row NotJson", "3 blank", "4 acme 2026-07 1250 usd -"
      ])
    }))

  it.effect("says why a number cannot be an amount", () =>
    Effect.gen(function*() {
      const [refusal] = refusalsOf(yield* readNdjson(`{"customer_id":"acme","amount":0.1,${rest}}`))
      assert.match(refusal!.message, /^invoices\.ndjson: line 1, column amount: "0\.1": must be a JSON string .*float/)
    }))

  it.effect("refuses a mapping that no row uses", () =>
    Effect.gen(function*() {
      const result = yield* readNdjson(good, { map: new Map([["posten", "item"]]) })
      assert.deepStrictEqual(shorts(result), ["1 acme 2026-07 1250 usd -", "error HeaderRefused"])
    }))

  it.effect("is chosen by extension or by option", () =>
    Effect.gen(function*() {
      for (const [file, options] of [["a.jsonl", {}], ["a.NDJSON", {}], ["a.txt", { format: "ndjson" }]] as const) {
        assert.deepStrictEqual(shorts(yield* read(good, options, { file })), [ok])
      }
      assert.deepStrictEqual(shorts(yield* read(good, { format: "csv" }, { file: "a.ndjson" })), ["error BrokenQuotes"])
    }))

  it.prop("finds every field of an object, as JSON does", [Schema.Record(Schema.String, Schema.Json), Schema.Literals([0, 1, 4])], ([object, space]) => {
    const text = JSON.stringify(object, null, space)
    const fields = Result.getOrThrow(jsonFields(text))
    assert.deepStrictEqual(fields.map(({ key }) => key), Object.keys(JSON.parse(text)))
    for (const field of fields) assert.deepStrictEqual(JSON.parse(field.source), field.value)
  })
})
