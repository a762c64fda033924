/**
 * Somebody else's query, read and never obeyed further: it runs in a transaction that the server itself holds to be read-only, so
 * that a text which writes is refused before it changes anything. Whoever stops reading ends the statement at the server.
 */
import { type Cause, Effect, Queue, Schema, type Scope, Stream } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Database } from "./Database.ts"
import { detailOf } from "./internal/failures.ts"

/** The database refused a query, or failed on it. The detail is PostgreSQL's code and words. */
export class QueryRefused extends Schema.TaggedError<QueryRefused>("@purser/postgres/ReadOnlyQuery/QueryRefused")("QueryRefused", {
  query: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `the query ${JSON.stringify(this.query)} was refused: ${this.detail}`
  }
  get isRetryable() {
    return false
  }
}

const shownChars = 160

/** A query may name another database with its password, and the server repeats what it could not read. */
const withoutSecrets = (text: string) =>
  text.replaceAll(/(password\s*=\s*)('[^']*'|[^\s'";]+)/gi, "$1***").replaceAll(/(:\/\/[^\s:@/]*:)[^\s@/]+@/g, "$1***@")

const nameOf = (query: string) => {
  const line = withoutSecrets(query).replaceAll(/\s+/g, " ").trim()
  return line.length <= shownChars ? line : `${line.slice(0, shownChars)}…`
}

const refusedOf = (query: string) => (error: SqlError.SqlError) =>
  new QueryRefused({ query: nameOf(query), detail: withoutSecrets(detailOf(error)) })

const bufferRows = 2000

/** Reads without writing. */
export const ReadOnlyQuery = {
  /** The rows of one statement, in its order. */
  rows: (query: string, params: ReadonlyArray<unknown>): Stream.Stream<unknown, QueryRefused, Database | SqlClient.SqlClient> =>
    Stream.unwrap(Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const { kind } = yield* Database
      const inTransaction = <A, R>(read: Effect.Effect<A, SqlError.SqlError, R>) =>
        sql.withTransaction(Effect.andThen(sql`set transaction read only`, read)).pipe(Effect.mapError(refusedOf(query)))
      const statement = sql.unsafe(query, params)
      // The embedded database has one session: whoever takes the rows could not write one while this transaction is open.
      if (kind === "pglite") return Stream.fromIterableEffect(inTransaction(Stream.runCollect(statement.stream)))
      return Stream.callback<unknown, QueryRefused, Scope.Scope>((rows: Queue.Queue<unknown, QueryRefused | Cause.Done>) =>
        inTransaction(Stream.runForEachArray(statement.stream, (chunk) => Queue.offerAll(rows, chunk))).pipe(
          Effect.andThen(Queue.end(rows))
        ), { bufferSize: bufferRows, strategy: "suspend" })
    }))
}
