/**
 * Columns of a batch as typed array parameters. The type is always given: an array of nulls alone has none that could be
 * guessed, and each operation must keep one prepared statement for every batch.
 */
import { PgTypes } from "@effect/sql-pg"
import { Result } from "effect"

const column = (oid: number) => (values: ReadonlyArray<unknown>): PgTypes.Parameter => Result.getOrThrow(PgTypes.array(values, oid))

/** PostgreSQL's text holds no NUL; free text from outside must not make a whole statement fail. */
const storable = (value: string | null): string | null => value?.includes("\0") === true ? value.replaceAll("\0", "") : value

/** Many columns of a batch say the same in each row, which is looked at once. */
const areStorable = (values: ReadonlyArray<string | null>): boolean => {
  let known: string | null = null
  for (const value of values) {
    if (value === known || value === null) continue
    if (value.includes("\0")) return false
    known = value
  }
  return true
}
const asBigints = (values: ReadonlyArray<number | bigint | null>): ReadonlyArray<bigint | null> => {
  let known: number | bigint | null = null
  let made: bigint | null = null
  return values.map((value) => {
    if (value !== known) {
      known = value
      made = value === null ? null : BigInt(value)
    }
    return made
  })
}

const textColumn = column(PgTypes.OID.text)
/** `text[]` */
export const texts = (values: ReadonlyArray<string | null>) => textColumn(areStorable(values) ? values : values.map(storable))
/** `text[]` of what was checked to be free of control characters, as the ids of a request are. */
export const ids: (values: ReadonlyArray<string | null>) => PgTypes.Parameter = textColumn
/** `bigint[]` of whole numbers */
export const bigints = (values: ReadonlyArray<number | bigint | null>) => column(PgTypes.OID.int8)(asBigints(values))
/** `integer[]` */
export const integers: (values: ReadonlyArray<number>) => PgTypes.Parameter = column(PgTypes.OID.int4)
/** `boolean[]` */
export const booleans: (values: ReadonlyArray<boolean>) => PgTypes.Parameter = column(PgTypes.OID.bool)
/** `double precision[]` */
export const doubles: (values: ReadonlyArray<number>) => PgTypes.Parameter = column(PgTypes.OID.float8)
/** `double precision[]` with nulls */
export const nullableDoubles: (values: ReadonlyArray<number | null>) => PgTypes.Parameter = column(PgTypes.OID.float8)
/** `text` */
export const text = (value: string | null) => PgTypes.text(storable(value))
/** `text` that was checked, as `ids`. */
export const id: (value: string | null) => PgTypes.Parameter = PgTypes.text
/** `bigint` */
export const bigint = (value: number | bigint | null) => PgTypes.int8(value === null ? null : BigInt(value))
/** `boolean` */
export const boolean = PgTypes.bool
/** `integer` */
export const integer = PgTypes.int4
/** `double precision` */
export const double = PgTypes.float8
