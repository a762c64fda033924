/**
 * Stripe's search language: clauses `field:"value"`, `field~"part"`, `field>1`, `-field:"value"`,
 * `metadata["key"]:"value"`, `field:null`, joined by AND or by OR.
 *
 * Refuses what Stripe refuses: both joins in one query, parentheses, fields that cannot be searched.
 */

/** The value of a searchable field of an object; undefined when the field cannot be searched. */
export type FieldReader<A> = (item: A, field: string) => string | number | null | undefined

/** A test for one object, or why the query is none. */
export type Query<A> = { readonly matches: (item: A) => boolean } | { readonly error: string }

const clausePattern =
  /\s*(-?)(metadata\[(?:"[^"]*"|'[^']*')\]|[a-z_.]+)\s*(:|~|>=|<=|>|<)\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|null|-?[0-9]+)\s*/y
const joinPattern = /(AND|OR)\b/iy

interface Clause {
  readonly negated: boolean
  readonly field: string
  readonly operator: string
  readonly value: string | number | null
}

const unquoted = (text: string): string => text.slice(1, -1).replace(/\\(.)/g, "$1")

const valueOf = (text: string): string | number | null =>
  text === "null" ? null : /^["']/.test(text) ? unquoted(text) : Number(text)

const holds = (clause: Clause, actual: string | number | null): boolean => {
  const { operator, value } = clause
  switch (operator) {
    case ":":
      // Numbers may be quoted or not.
      return value === null ? actual === null : actual !== null && String(actual).toLowerCase() === String(value).toLowerCase()
    case "~":
      return typeof actual === "string" && actual.toLowerCase().includes(String(value).toLowerCase())
    default: {
      if (actual === null) return false
      const [left, right] = [Number(actual), Number(value)]
      return operator === ">" ? left > right : operator === "<" ? left < right : operator === ">=" ? left >= right : left <= right
    }
  }
}

const clausesOf = (text: string): { readonly clauses: ReadonlyArray<Clause>; readonly join: string } | string => {
  const clauses: Array<Clause> = []
  const joins = new Set<string>()
  let at = 0
  while (at < text.length || clauses.length === 0) {
    if (clauses.length > 0) {
      joinPattern.lastIndex = at
      const join = joinPattern.exec(text)?.[1]?.toUpperCase() ?? "AND"
      // A blank alone joins as AND does.
      if (joinPattern.lastIndex > at) at = joinPattern.lastIndex
      joins.add(join)
    }
    clausePattern.lastIndex = at
    const match = clausePattern.exec(text)
    if (match === null) return `We were unable to parse the search query at position ${at}: ${text.slice(at, at + 20)}`
    const [whole, minus, field = "", operator = "", value = ""] = match
    clauses.push({ negated: minus === "-", field, operator, value: valueOf(value) })
    at += whole.length
  }
  return joins.size > 1 ? "You cannot combine AND and OR in one search query." : { clauses, join: [...joins][0] ?? "AND" }
}

const fieldName = (field: string): string =>
  field.startsWith("metadata[") ? `metadata.${unquoted(field.slice(9, -1))}` : field

/** Reads a query for objects whose fields `read` knows; `metadata.key` is a field. */
export const parseQuery = <A>(text: string, read: FieldReader<A>, searchable: (field: string) => boolean): Query<A> => {
  const parsed = clausesOf(text)
  if (typeof parsed === "string") return { error: parsed }
  const clauses = parsed.clauses.map((clause) => ({ ...clause, field: fieldName(clause.field) }))
  const unknown = clauses.find(({ field }) => !field.startsWith("metadata.") && !searchable(field))
  if (unknown !== undefined) return { error: `Field \`${unknown.field}\` is an unsupported search field for this resource.` }
  const one = (item: A) => (clause: Clause) => holds(clause, read(item, clause.field) ?? null) !== clause.negated
  return {
    matches: parsed.join === "OR" ? (item) => clauses.some(one(item)) : (item) => clauses.every(one(item))
  }
}
