/** Statements of the vault store: sent, decoded row by row, and named on failure. No detail repeats a parameter. */
import { retryRolledBack } from "@purser/postgres/RolledBack"
import { Effect, Schema } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { VaultRefused, VaultStoreError, VaultStoreUnavailable } from "../VaultStoreError.ts"

/** The database failed, or a row is not what it should be. */
export type QueryFailure = SqlError.SqlError | Schema.SchemaError

const stateOf = (failure: QueryFailure): string => {
  if (failure._tag === "SchemaError") return ""
  const { cause } = failure.reason
  return typeof cause === "object" && cause !== null && "code" in cause && "severity" in cause ? String(cause.code) : ""
}

/** The server refused a value of the statement, and wrote nothing: others of its batch are tried without it. */
export const isBadInput = (failure: QueryFailure): boolean => /^(?:22|23|54)/.test(stateOf(failure))

const detailOf = (failure: QueryFailure): string => {
  if (failure._tag === "SchemaError") return "a row is not what the schema says"
  const { cause } = failure.reason
  const server = typeof cause === "object" && cause !== null && "code" in cause && "message" in cause && "severity" in cause
  return server ? `${String(cause.code)} ${String(cause.message)}` : failure.reason._tag
}

/** The failure in the store's words. */
export const unavailable = (operation: string) => (failure: QueryFailure): VaultStoreError =>
  new VaultStoreError({
    reason: isBadInput(failure)
      ? new VaultRefused({ detail: `the store does not take a value of this ${operation} (${stateOf(failure)})` })
      : new VaultStoreUnavailable({ operation, detail: detailOf(failure) })
  })

/** Sends statements for rows of one kind. Made once for each kind: a decoder is compiled at its first use, which takes longer than a statement. */
export const rowsOf = <S extends Schema.Top & { readonly DecodingServices: never }>(sql: SqlClient.SqlClient, schema: S) => {
  const decode = Schema.decodeUnknownEffect(Schema.Array(schema))
  return (statement: string, params: ReadonlyArray<unknown>): Effect.Effect<ReadonlyArray<S["Type"]>, QueryFailure> =>
    retryRolledBack(Effect.flatMap(sql.unsafe(statement, params), decode))
}
