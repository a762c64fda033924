import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Result, Schema } from "effect"
import { jsonReader, plainRecord } from "../src/internal/plainRecord.ts"
import { jsonWriter } from "../src/internal/typedWire.ts"

const Plain = Schema.Struct({ text: Schema.String, whole: Schema.Int, number: Schema.Finite, flag: Schema.Boolean })
const odd = Schema.Union([Schema.Json, Schema.Literals([1.5, 2 ** 53, -0, 1e308]), Schema.Number, Schema.BigInt, Schema.Undefined])
const field = <S extends Schema.Codec<unknown, unknown>>(usual: S) => Arbitrary.schema(Schema.Union([usual, usual, usual, usual, odd]))
const value = Arbitrary.map(
  Arbitrary.all([field(Schema.String), field(Schema.Int), field(Schema.Finite), field(Schema.Boolean), Arbitrary.schema(Schema.Json), Arbitrary.schema(Schema.Int.pipe(Schema.check(Schema.isBetween({ minimum: 0, maximum: 9 }))))]),
  ([text, whole, number, flag, more, kind]): unknown => kind === 0 ? more : kind === 1 ? [text] : kind === 2 ? { text, whole, flag } : kind < 6 ? { text, whole, number, flag } : { more, flag, text, whole, number }
)

describe("plain records", () => {
  it.prop("are read and written as their schema does it, and so is everything else", [value], ([some]) => {
    const json = Schema.toCodecJson(Plain)
    const [fast, slow] = [jsonReader(Plain)(some), Schema.decodeUnknownResult(json)(some)]
    assert.deepStrictEqual(Result.isSuccess(fast) ? fast.success : "refused", Result.isSuccess(slow) ? slow.success : "refused")
    const written = Schema.encodeUnknownResult(json)(some)
    assert.strictEqual(Result.getOrUndefined(jsonWriter(Plain)(some as typeof Plain.Type)), Result.isSuccess(written) ? JSON.stringify(written.success) : undefined)
  }, { arbitrary: { runs: 1000 } })

  it("are those without options, rules of their own, encodings or other types", () => {
    assert.isDefined(plainRecord(Plain))
    for (const type of [Schema.optionalKey(Schema.String), Schema.NonEmptyString, Schema.Date, Schema.NullOr(Schema.String), Schema.Number, Schema.Literal("a"), Schema.Int.pipe(Schema.check(Schema.isGreaterThan(0)))]) {
      assert.isUndefined(plainRecord(Schema.Struct({ text: Schema.String, other: type })))
    }
    class Named extends Schema.Class<Named>("test/Named")({ text: Schema.String }) {}
    for (const schema of [Named, Schema.String, Schema.Struct({}), Schema.Record(Schema.String, Schema.Int), Plain.pipe(Schema.check(Schema.makeFilter(({ flag }) => flag)))]) {
      assert.isUndefined(plainRecord(schema as Schema.Codec<unknown, unknown>))
    }
  })
})
