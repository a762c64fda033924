/** What the database's own failures become: `LedgerUnavailable` or `CapUnavailable`, with a detail that holds no secret. */
import { CapUnavailable, ChargeKey, LedgerError, LedgerUnavailable, SpendCapError } from "@purser/core"
import { Effect, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { noRoom } from "../migrations/0003_create_cap_functions.ts"

/** The database failed, or a row was not what the schema says. */
export type StoreFailure = SqlError.SqlError | Schema.SchemaError | Contended

/** Rows kept changing under a statement for as often as it was tried. */
export class Contended extends Schema.TaggedError<Contended>("@purser/postgres/Contended")("Contended", { operation: Schema.String }) {
  override get message() {
    return `${this.operation}: other writers were faster every time`
  }
}

const isSql = (failure: StoreFailure): failure is SqlError.SqlError => failure._tag === "SqlError"

const isOfServer = (cause: unknown): cause is { readonly code: unknown; readonly message: unknown } =>
  typeof cause === "object" && cause !== null && "code" in cause && "message" in cause && "severity" in cause

/** Another transaction was in the way: nothing of this one is written. */
export const isRolledBack = (failure: StoreFailure): boolean =>
  isSql(failure) && (failure.reason._tag === "DeadlockError" || failure.reason._tag === "SerializationError")

/** The same statement may be sent again. */
export const retryRolledBack = <A, E extends StoreFailure>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  // What a repeat needs is made for the few that come to one.
  Effect.catchIf(effect, isRolledBack, () => Effect.retry(effect, { while: isRolledBack, times: 7 }))

/** One bad value fails a whole statement; the others of its batch are tried without it. */
export const isBadInput = (failure: StoreFailure): boolean =>
  isSql(failure) && (failure.reason._tag === "ConstraintError" || failure.reason._tag === "UnknownError")

/** A row of this key is there already. */
export const isTaken = (failure: StoreFailure): boolean => isSql(failure) && failure.reason._tag === "UniqueViolation"

/** A first claim that would have taken room has found none. */
export const isWithoutRoom = (failure: StoreFailure): boolean => isSql(failure) && isOfServer(failure.reason.cause) && failure.reason.cause.code === noRoom

/** The server's code and words, or the client's; never a URL, a password or a parameter. */
export const detailOf = (failure: StoreFailure): string => {
  if (failure._tag === "SchemaError") return "a row is not what the schema says"
  if (!isSql(failure)) return failure.message
  const { cause } = failure.reason
  const server = isOfServer(cause)
  return server ? `${String(cause.code)} ${String(cause.message)}` : `${failure.reason._tag}: ${failure.message}`
}

const isKey = Schema.is(ChargeKey)
/** What is no key of a charge, and may be why the statement failed, is none in its error either. */
const named = (chargeKey: ChargeKey | null) => isKey(chargeKey) ? chargeKey : null

/** Names the operation and the charge. */
export const ledgerUnavailable = (operation: string, chargeKey: ChargeKey | null = null) => (failure: StoreFailure): LedgerError =>
  new LedgerError({ reason: new LedgerUnavailable({ operation, detail: detailOf(failure) }), chargeKey: named(chargeKey) })

/** Names the operation and the charge. */
export const capUnavailable = (operation: string, chargeKey: ChargeKey | null = null) => (failure: StoreFailure): SpendCapError =>
  new SpendCapError({ reason: new CapUnavailable({ operation, detail: detailOf(failure) }), chargeKey: named(chargeKey) })
