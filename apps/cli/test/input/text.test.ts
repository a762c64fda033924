/** What is and is not text, and that the places where bytes are cut make no difference. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import { maximumRowLength } from "../../src/input/InputOptions.ts"
import { bytesOf, goodRow, header, read, readNdjson, shorts } from "./support.ts"

const latin1 = (text: string) => Uint8Array.from(text, (char) => char.charCodeAt(0))
const file = `${header}\r\n${goodRow}\r\n`

const expectNotText = (content: Uint8Array, kind: string, line: number) =>
  Effect.gen(function*() {
    for (const lengths of [[], [1], [2], [3, 1]]) {
      const { error } = yield* read(content, {}, { lengths })
      assert.strictEqual(error?.reason._tag, "NotText")
      if (error?.reason._tag !== "NotText") return
      assert.deepStrictEqual([error.reason.kind, error.reason.line], [kind, line])
    }
  })

describe("encodings", () => {
  it.effect("refuses UTF-16 with a mark", () => expectNotText(Uint8Array.of(0xff, 0xfe, 0x63, 0), "Utf16", 1))
  it.effect("refuses big-endian UTF-16 with a mark", () => expectNotText(Uint8Array.of(0xfe, 0xff, 0, 0x63), "Utf16", 1))
  it.effect("refuses UTF-16 without a mark by its NULs", () => expectNotText(latin1("c\0u\0s\0"), "Nul", 1))
  it.effect("refuses a spreadsheet", () => expectNotText(latin1("PK\u0003\u0004rest of the zip"), "Spreadsheet", 1))
  it.effect("refuses a gzip file", () => expectNotText(Uint8Array.of(0x1f, 0x8b, 8, 0, 0), "Compressed", 1))
  it.effect("refuses Latin-1 with the line of the first bad byte", () => expectNotText(latin1(`${file}caf\u00e9,2026-07`), "InvalidUtf8", 3))
  it.effect("refuses a character that is cut by the end of the file", () => expectNotText(latin1(`${file}\u00e2\u0082`), "InvalidUtf8", 3))
  it.effect("refuses an encoded surrogate", () => expectNotText(latin1(`${file}\u00ed\u00a0\u0080`), "InvalidUtf8", 3))
  it.effect("refuses a NUL with its line", () => expectNotText(bytesOf(`${file}a\0b`), "Nul", 3))
  it.effect("counts a lone CR before a bad byte as a line", () => expectNotText(latin1(`${header}\r${goodRow}\r\u00ff`), "InvalidUtf8", 3))

  it.effect("yields the rows before a bad byte first", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(shorts(yield* read(latin1(`${file}\u00ff`))), ["2 acme 2026-07 1250 usd base", "error NotText"])
    }))

  it.effect("refuses a byte-order mark that is not at the start as part of an id", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(shorts(yield* read(`${header}\n\ufeff${goodRow}\n`)), ["2 refused customer_id#1 InvalidId"])
    }))

  it.effect("strips the mark of an NDJSON file", () =>
    Effect.gen(function*() {
      const line = `{"customer_id":"ä","billing_period":"2026-07","amount":"1.00","currency":"usd","stripe_customer_id":"c"}`
      assert.deepStrictEqual(shorts(yield* readNdjson(`\ufeff${line}`, {}, [1])), ["1 ä 2026-07 100 usd -"])
    }))
})

describe("line ends", () => {
  for (const [name, end] of [["LF", "\n"], ["CRLF", "\r\n"], ["lone CR", "\r"]] as const) {
    it.effect(`reads ${name}`, () =>
      Effect.gen(function*() {
        const content = [header, goodRow, "", goodRow].join(end)
        for (const lengths of [[], [1]]) {
          assert.deepStrictEqual(shorts(yield* read(content, {}, { lengths })), [
            "2 acme 2026-07 1250 usd base", "3 blank", "4 acme 2026-07 1250 usd base"
          ])
        }
      }))
  }
})

describe("quotes", () => {
  const expectBroken = (content: string, problem: string, line: number, columnIndex: number) =>
    Effect.gen(function*() {
      for (const lengths of [[], [1], [7]]) {
        const { error } = yield* read(content, {}, { lengths })
        assert.strictEqual(error?.reason._tag, "BrokenQuotes")
        if (error?.reason._tag !== "BrokenQuotes") return
        assert.deepStrictEqual([error.reason.problem, error.reason.line, error.reason.columnIndex], [problem, line, columnIndex])
      }
    })

  it.effect("refuses one inside a cell", () => expectBroken(`${header}\nac"me,x\n`, "Stray", 2, 1))
  it.effect("refuses one after blanks", () => expectBroken(`${header}\nacme, "x"\n`, "Stray", 2, 2))
  it.effect("refuses text after a closing quote", () => expectBroken(`${header}\na,"b\r\nc"d\n`, "Stray", 3, 2))
  it.effect("refuses one that is never closed, at its own line", () => expectBroken(`${header}\n${goodRow}\na,"b\nc\n`, "Unclosed", 3, 2))
  it.effect("refuses one that opens as the last character", () => expectBroken(`${header}\n${goodRow}\n"`, "Unclosed", 3, 1))

  it.effect("takes a file whose last cell is quoted and has no newline", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(shorts(yield* read(`${header}\nacme,2026-07,1.00,usd,c,"","b""x"`, {}, { lengths: [1] })), [
        "2 acme 2026-07 100 usd b\"x"
      ])
    }))
})

describe("row size", () => {
  const tooLarge = (content: string, lengths: ReadonlyArray<number>) =>
    Effect.gen(function*() {
      const { error } = yield* read(content, {}, { lengths })
      assert.deepStrictEqual(error?.reason._tag === "RowTooLarge" ? error.reason.line : error?.reason, 2)
    })
  const over = "x".repeat(maximumRowLength + 1)

  it.effect("is bounded for plain rows", () => tooLarge(`${header}\n${over}\n`, []))
  it.effect("is bounded for a row that arrives in pieces", () => tooLarge(`${header}\n${over}`, [65_536]))
  it.effect("is bounded for a quote that is never closed", () => tooLarge(`${header}\n"${over}`, [65_536]))
  it.effect("is bounded before a stray quote far away", () => tooLarge(`${header}\n${over}"`, []))
  it.effect("is bounded for lines of NDJSON", () =>
    Effect.gen(function*() {
      const { error } = yield* readNdjson(over)
      assert.strictEqual(error?.reason._tag, "RowTooLarge")
    }))
  it.effect("takes a row at the limit", () =>
    Effect.gen(function*() {
      const note = "x".repeat(maximumRowLength - goodRow.length - 1)
      assert.deepStrictEqual(shorts(yield* read(`${header},note\n${goodRow},${note}\n`)), ["2 acme 2026-07 1250 usd base"])
    }))
})

describe("any bytes", () => {
  const byte = Schema.Int.pipe(Schema.check(Schema.isBetween({ minimum: 0, maximum: 255 })))
  const bytes = Arbitrary.array(Arbitrary.schema(byte), { maxLength: 60 })
  const lengths = Arbitrary.array(Arbitrary.schema(Schema.Int.pipe(Schema.check(Schema.isBetween({ minimum: 1, maximum: 5 })))), { minLength: 1, maxLength: 4 })
  /** Bytes that mean something to a reader come more often than chance would have it. */
  const spice = Arbitrary.array(
    Arbitrary.schema(Schema.Literals([",", ";", "\"", "\"\"", "\r", "\n", "\r\n", "acme", "2026-07", "12.50", "usd", "é", "😀", "\0", "{", "}", ":", "[", "\\", goodRow, "\n" + goodRow + "\n"])),
    { maxLength: 30 }
  )

  it.effect.prop("end in entries or one typed error, whatever the cuts", [bytes, spice, lengths], ([noise, words, cuts]) =>
    Effect.gen(function*() {
      const tails = [Uint8Array.from(noise), bytesOf(words.join("")), Buffer.concat([bytesOf(words.join("")), Uint8Array.from(noise)])]
      for (const tail of tails) {
        for (const head of ["", `${header}\n`]) {
          const content = Buffer.concat([bytesOf(head), tail])
          const whole = yield* read(content)
          assert.deepStrictEqual(yield* read(content, {}, { lengths: cuts }), whole)
          const json = yield* readNdjson(content)
          assert.deepStrictEqual(yield* readNdjson(content, {}, cuts), json)
        }
      }
    }), { arbitrary: { runs: 200 } })
})
