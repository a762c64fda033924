/** Valid bytes, changed: what a broken disk, an old program and an enemy would send. */
import { Arbitrary, Schema } from "effect"

/** An integer of this range. */
export const between = (minimum: number, maximum: number) =>
  Arbitrary.schema(Schema.Int.pipe(Schema.check(Schema.isBetween({ minimum, maximum }))))

/** One of these. */
export const oneOf = <const Values extends readonly [string, ...ReadonlyArray<string>]>(values: Values): Arbitrary.Arbitrary<Values[number]> =>
  Arbitrary.map(between(0, values.length - 1), (index) => values[index]!)

/** What has broken readers before, whatever they read: look-alikes, marks, numbers that are none, and endless nesting. */
const nasty = [
  "\0", "\r", "\n", "\r\n", "\t", "\u0085", "\u2028", "\u00a0", "\ufeff", "\u200b", "\u202e", "\ufffd", "e\u0301", "😀", "\u212a", "\u017f", "１", "−",
  "\"", "\"\"", "'", "\\", "\\u0000", "\\ud800", "\\\"", "%00", "%", "%25", "%ff", "%2e%2e", "//", "/../", "{", "}", "[", "]", ":", ",", ";", "&", "=", "?", "#", "+", " ",
  "null", "true", "{}", "[]", "0", "-0", "-1", "1e3", "1E400", "0.1", "00", "9007199254740993", "1999.0000000000000001", "NaN", "Infinity", "0x10",
  "__proto__", "constructor", "toString", "[".repeat(5000)
] as const

type Kind = "replace" | "insert" | "token" | "remove" | "repeat" | "cut" | "move"

const mutationOf = (tokens: ReadonlyArray<string>) => {
  const [first, ...rest] = [...nasty, ...tokens]
  return Arbitrary.all({
    kind: oneOf(["replace", "insert", "token", "token", "remove", "repeat", "cut", "move"]),
    at: between(0, 99_999),
    to: between(0, 99_999),
    length: between(1, 40),
    byte: between(0, 255),
    token: oneOf([first!, ...rest])
  })
}

interface Mutation {
  readonly kind: Kind
  readonly at: number
  readonly to: number
  readonly length: number
  readonly byte: number
  readonly token: string
}

const mutate = (bytes: Buffer, { at, byte, kind, length, to, token }: Mutation): Buffer => {
  const from = at % (bytes.length + 1)
  const head = bytes.subarray(0, from)
  const some = bytes.subarray(from, from + length)
  switch (kind) {
    case "replace":
      return Buffer.concat([head, Buffer.of(byte), bytes.subarray(from + 1)])
    case "insert":
      return Buffer.concat([head, Buffer.of(byte), bytes.subarray(from)])
    case "token":
      return Buffer.concat([head, Buffer.from(token), bytes.subarray(from + (length > 20 ? token.length : 0))])
    case "remove":
      return Buffer.concat([head, bytes.subarray(from + length)])
    case "repeat":
      return Buffer.concat([head, some, bytes.subarray(from)])
    case "cut":
      // Most inputs should be more than a beginning.
      return to % 4 === 0 ? head : bytes
    case "move": {
      const rest = Buffer.concat([head, bytes.subarray(from + length)])
      const where = to % (rest.length + 1)
      return Buffer.concat([rest.subarray(0, where), some, rest.subarray(where)])
    }
  }
}

/** The text's bytes after up to four changes; `tokens` are words of its language. */
export const mutated = (valid: Arbitrary.Arbitrary<string>, tokens: ReadonlyArray<string>): Arbitrary.Arbitrary<Buffer> =>
  Arbitrary.map(
    Arbitrary.all([valid, Arbitrary.array(mutationOf(tokens), { maxLength: 4 })]),
    ([text, mutations]) => mutations.reduce(mutate, Buffer.from(text))
  )

/** Any bytes at all. */
export const noise: Arbitrary.Arbitrary<Buffer> = Arbitrary.map(Arbitrary.array(between(0, 255)), (bytes) => Buffer.from(bytes))
