/** Texts of people that other people's terminals show. */
import { assert, describe, it } from "@effect/vitest"
import { plainLines, plainText, plainTextProblem } from "../src/PlainText.ts"

const hidden = ["\u0000", "\n", "\r", "\t", "\u001b[2J", "\u007f", "\u009b", "\u061c", "\u200f", "\u2028", "\u202e", "\u2066", "\ud800"]
const plain = ["", "month's end", "Zoë Müller, 会計", "שלום", "🧾 d'accord – 50 %", "👩\u200d💻"]

describe("texts of people", () => {
  it("are refused for what a terminal would obey, and for nothing that is only foreign", () => {
    for (const text of hidden) assert.isString(plainTextProblem(`why ${text} not`), JSON.stringify(text))
    for (const text of plain) assert.isUndefined(plainTextProblem(text), text)
  })

  it("are shown with that escaped, once, so that nothing is left to refuse", () => {
    for (const text of hidden) assert.isUndefined(plainTextProblem(plainText(text)), JSON.stringify(text))
    assert.strictEqual(plainText("x\ny\u001b[2J\u202e"), "x\\u000ay\\u001b[2J\\u202e")
    for (const text of plain) assert.deepStrictEqual([plainText(text), plainLines(text)], [text, text])
  })

  it("of several lines keep these, and as JSON they mean the same", () => {
    assert.strictEqual(plainLines("a\tb\nc\u001b[31m"), "a\tb\nc\\u001b[31m")
    const value = { reason: hidden.slice(0, -1).join("") }
    assert.deepStrictEqual(JSON.parse(plainLines(JSON.stringify(value))), value)
  })
})
