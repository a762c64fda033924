/** One statement at a time for stores that need no batches: sent, tried again when it was rolled back, decoded, named on failure. */
import type { LedgerError } from "@purser/core"
import { Effect, type Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { decodeRows } from "./chargeRow.ts"
import { ledgerUnavailable, retryRolledBack } from "./failures.ts"

/** Sends a statement for its effect. */
export const sender = (sql: SqlClient.SqlClient) => (operation: string, statement: string, params: ReadonlyArray<unknown>): Effect.Effect<void, LedgerError> =>
  Effect.asVoid(retryRolledBack(sql.unsafe(statement, params))).pipe(Effect.mapError(ledgerUnavailable(operation)))

/** Sends a statement for its rows. */
export const asker = (sql: SqlClient.SqlClient) => <S extends Schema.Top & { readonly DecodingServices: never }>(
  operation: string,
  statement: string,
  params: ReadonlyArray<unknown>,
  schema: S
): Effect.Effect<ReadonlyArray<S["Type"]>, LedgerError> =>
  retryRolledBack(Effect.flatMap(sql.unsafe(statement, params), decodeRows(schema))).pipe(Effect.mapError(ledgerUnavailable(operation)))
