/**
 * Records that JSON carries as they are: fields of text, finite numbers, integers and booleans, all required. They are read
 * and written without walking their schema, which costs more than parsing them. Whatever is not so plain, in the schema
 * or in a value, gives `undefined` and is left to the schema; a property test holds that both say the same.
 */
import { Result, Schema } from "effect"

type Check = (value: unknown) => boolean

const isText: Check = (value) => typeof value === "string"
const isFlag: Check = (value) => typeof value === "boolean"
const numbers: Record<string, Check> = { "effect/schema/isInt": Number.isSafeInteger, "effect/schema/isFinite": Number.isFinite }

const checkOf = (ast: Schema.Top["ast"]): Check | undefined => {
  if (ast.encoding !== undefined || ast.context !== undefined) return undefined
  if (ast._tag === "String") return ast.checks === undefined ? isText : undefined
  if (ast._tag === "Boolean") return ast.checks === undefined ? isFlag : undefined
  if (ast._tag !== "Number" || ast.checks?.length !== 1) return undefined
  const representation: unknown = ast.checks[0].annotations?.["representation"]
  return typeof representation === "object" && representation !== null && "id" in representation ? numbers[String(representation.id)] : undefined
}

/** A reader of values of the schema, which gives `undefined` for what the schema has to look at; undefined when that is all. */
export const plainRecord = <A>(schema: Schema.Codec<A, unknown>): ((value: unknown) => A | undefined) | undefined => {
  const { ast } = Schema.toCodecJson(schema)
  if (ast._tag !== "Objects" || ast.indexSignatures.length > 0 || ast.propertySignatures.length === 0) return undefined
  if (ast.checks !== undefined || ast.encoding !== undefined || ast.context !== undefined) return undefined
  const fields: Array<readonly [name: string, check: Check]> = []
  for (const { name, type } of ast.propertySignatures) {
    const check = checkOf(type)
    if (check === undefined || typeof name !== "string" || name === "__proto__") return undefined
    fields.push([name, check])
  }
  const names = fields.map(([name]) => name)
  const checks = fields.map(([, check]) => check)
  // Its fields in the schema's order and nothing else is the usual value, and is its own record: a walk over what is there
  // costs a fraction of a look for each name and of a copy.
  const isRecord = (value: object): boolean => {
    if (Object.getPrototypeOf(value) !== Object.prototype) return false
    let at = 0
    for (const name in value) {
      if (name !== names[at] || !checks[at]!(value[name as keyof typeof value])) return false
      at++
    }
    return at === names.length
  }
  return (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined
    if (isRecord(value)) return value as A
    const record: Record<string, unknown> = {}
    for (const [name, check] of fields) {
      const field: unknown = Object.hasOwn(value, name) ? value[name as keyof typeof value] : undefined
      if (!check(field)) return undefined
      record[name] = field
    }
    return record as A
  }
}

/** Reads what JSON has brought. */
export const jsonReader = <A>(schema: Schema.Codec<A, unknown>) => {
  const decode = Schema.decodeUnknownResult(Schema.toCodecJson(schema))
  const plain = plainRecord(schema)
  return plain === undefined ? decode : (value: unknown): ReturnType<typeof decode> => {
    const record = plain(value)
    return record === undefined ? decode(value) : Result.succeed(record)
  }
}
