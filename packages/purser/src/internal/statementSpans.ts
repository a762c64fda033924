/**
 * Spans of SQL statements by what they do and to which table: the client calls each by the name of the database, which all of them
 * share. Conventions of OpenTelemetry: the operation and its target, and nothing that makes names without end.
 */
import { Tracer } from "effect"

const written = /(?<!\b(?:for|do) )\b(insert into|update|delete from)\s+([\w."]+)/i
// Of a table with its schema, and of any name else: `extract(epoch from at)` reads from none.
const read = [/\bfrom\s+("?\w+"?\."?\w+"?)(?![\w"(])/i, /\bfrom\s+("?\w+"?)(?![\w"(])/i]

/** What is written first, else what is read from first, else the first word. */
const statementName = (sql: string): string => {
  const [, verb, table] = written.exec(sql) ?? []
  if (verb !== undefined) return `${verb.toLowerCase().replace(/ (?:into|from)$/, "")} ${table!.replaceAll("\"", "")}`
  const source = read.map((from) => from.exec(sql)?.[1]).find((name) => name !== undefined)
  return source === undefined ? /\w+/.exec(sql)?.[0].toLowerCase() ?? "statement" : `select ${source.replaceAll("\"", "")}`
}

/** The same tracer, for which statements have names of their own. */
export const namingStatements = (tracer: Tracer.Tracer): Tracer.Tracer =>
  Tracer.make({
    ...tracer,
    span: (options) => {
      const span: { -readonly [Key in keyof Tracer.Span]: Tracer.Span[Key] } = tracer.span(options)
      if (options.kind !== "client") return span
      const { attribute } = span
      // The text is told when the statement is sent.
      span.attribute = (key, value) => {
        if (key === "db.query.text" && typeof value === "string") span.name = statementName(value)
        attribute.call(span, key, value)
      }
      return span
    }
  })
