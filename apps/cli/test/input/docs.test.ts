/** The examples of docs/input-files.md are read, or refused, as the page says. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import type { Delimiter } from "../../src/input/InputOptions.ts"
import { InputErrorReason } from "../../src/input/InputError.ts"
import { read, refusalsOf, rowsOf } from "./support.ts"

const page = readFileSync(new URL("../../../../docs/input-files.md", import.meta.url), "utf8")
const examples = [...page.matchAll(/^```(csv|ndjson) (good|refused)(?: delimiter=(.) decimal=(.))?\n([^]*?)^```$/gm)]
  .map(([, format, verdict, delimiter, decimal, text]) => ({ format: format as "csv" | "ndjson", verdict, delimiter, decimal, text: text! }))

describe("docs/input-files.md", () => {
  it("has examples of both formats and both verdicts", () => assert.isAtLeast(new Set(examples.map(({ format, verdict }) => format + verdict)).size, 4))

  examples.forEach(({ decimal, delimiter, format, text, verdict }, index) => {
    it.effect(`example ${index + 1} (${format}) is ${verdict}`, () =>
      Effect.gen(function*() {
        const result = yield* read(text, { format, delimiter: delimiter as Delimiter | undefined, decimalMark: decimal as "," | undefined })
        assert.isUndefined(result.error)
        if (verdict === "good") assert.deepStrictEqual([rowsOf(result).length > 0, refusalsOf(result).map(({ message }) => message)], [true, []])
        else assert.deepStrictEqual([rowsOf(result), refusalsOf(result).length > 3], [[], true])
        if (delimiter !== undefined) assert.strictEqual((yield* read(text)).error?.reason._tag, "HeaderRefused")
      }))
  })

  it("names every reason that ends the reading", () => {
    for (const { fields } of InputErrorReason.members) assert.include(page, `\`${fields._tag.schema.literal}\``)
  })
})
