/**
 * The fields of one JSON object with the source text of their values.
 *
 * `JSON.parse` alone keeps the last of two equal keys and turns every number into a float; this finds both keys and
 * gives the digits as they were written.
 */
import { Result } from "effect"

/** A field as it stands in the text. `value` is parsed; `source` is how it was written. */
export interface JsonField {
  readonly key: string
  readonly value: unknown
  readonly source: string
}

/** The text is not JSON, or not an object. */
export type JsonProblem = "NotJson" | "NotAnObject"

const parse = (text: string) => Result.try({ try: (): unknown => JSON.parse(text), catch: (): JsonProblem => "NotJson" })

const backslash = 92
const quote = 34

/** Index after the string that opens at `open`, in text that is known to be JSON. */
const afterString = (text: string, open: number): number => {
  let at = open + 1
  while (text.charCodeAt(at) !== quote) at += text.charCodeAt(at) === backslash ? 2 : 1
  return at + 1
}

/** Index of the comma or brace after the value that begins at `start`. */
const afterValue = (text: string, start: number): number => {
  let depth = 0
  let at = start
  for (;;) {
    switch (text[at]) {
      case "\"":
        at = afterString(text, at)
        continue
      case "{":
      case "[":
        depth++
        break
      case "]":
        depth--
        break
      case "}":
        if (depth === 0) return at
        depth--
        break
      case ",":
        if (depth === 0) return at
        break
    }
    at++
  }
}

/** The fields in the order of the text, equal keys included. */
export const jsonFields = (text: string): Result.Result<ReadonlyArray<JsonField>, JsonProblem> =>
  Result.flatMap(parse(text), (json): Result.Result<ReadonlyArray<JsonField>, JsonProblem> => {
    if (typeof json !== "object" || json === null || Array.isArray(json)) return Result.fail("NotAnObject")
    const object = json as Record<string, unknown>
    const fields: Array<JsonField> = []
    let at = text.indexOf("\"")
    while (at >= 0) {
      const keyEnd = afterString(text, at)
      const raw = text.slice(at + 1, keyEnd - 1)
      const key = raw.includes("\\") ? String(JSON.parse(`"${raw}"`)) : raw
      const start = text.indexOf(":", keyEnd) + 1
      const end = afterValue(text, start)
      fields.push({ key, value: object[key], source: text.slice(start, end).trim() })
      at = text.charCodeAt(end) === 44 ? text.indexOf("\"", end) : -1
    }
    return Result.succeed(fields)
  })
