/**
 * What may be said about a connection: a label without secrets, and why it failed in words that hold no password.
 * It does not open connections; how a URL is meant is the client's business.
 */
import { type Cause, Effect, Redacted, Result, type Schema } from "effect"
import type { SqlError } from "effect/sql"
import { DatabaseUnavailable } from "../DatabaseError.ts"

const parse = (url: Redacted.Redacted): Result.Result<URL, unknown> => Result.try(() => new URL(Redacted.value(url)))

const decoded = (text: string): string => Result.getOrElse(Result.try(() => decodeURIComponent(text)), () => text)

/** `postgres://user@host:5432/name` of a URL; fails, without a word of it, when the text is not a PostgreSQL URL. */
export const labelOfUrl = (url: Redacted.Redacted): Effect.Effect<string, DatabaseUnavailable> => {
  const parsed = parse(url)
  if (Result.isFailure(parsed) || !/^postgres(ql)?:$/.test(parsed.success.protocol)) {
    return Effect.fail(
      new DatabaseUnavailable({
        database: "of PURSER_DATABASE_URL",
        detail: "the URL cannot be read; expected postgres://user:password@host:5432/database",
        isRetryable: false
      })
    )
  }
  const { hostname, pathname, port, searchParams, username } = parsed.success
  const host = hostname === "" ? searchParams.get("host") ?? "localhost" : hostname
  return Effect.succeed(
    `postgres://${username === "" ? "" : `${username}@`}${host}${port === "" ? "" : `:${port}`}${pathname}`
  )
}

/** Where a URL leads, as the client names it in its spans; what the URL leaves open is left to the client. */
export const placeOf = (url: Redacted.Redacted): { readonly host?: string; readonly port?: number; readonly database?: string } => {
  const parsed = parse(url)
  if (Result.isFailure(parsed)) return {}
  const { hostname, pathname, port } = parsed.success
  const database = decoded(pathname.slice(1))
  return {
    ...(hostname === "" || hostname.includes("%") ? {} : { host: hostname.replace(/^\[(.*)\]$/, "$1") }),
    ...(port === "" ? {} : { port: Number(port) }),
    ...(database === "" ? {} : { database })
  }
}

/** The texts of a URL that no message may repeat. */
export const secretsOf = (url: Redacted.Redacted | undefined): ReadonlyArray<string> => {
  if (url === undefined) return []
  const parsed = parse(url)
  if (Result.isFailure(parsed)) return []
  const passwords = [parsed.success.password, parsed.success.searchParams.get("password") ?? ""]
  return passwords.flatMap((password) => [password, decoded(password)]).filter((text) => text !== "")
}

const reasonText = (reason: SqlError.SqlErrorReason): string => {
  const cause = reason.cause
  const own = cause instanceof AggregateError
    ? cause.errors.map((error) => error instanceof Error ? error.message : String(error)).join(", ")
    : cause instanceof Error
    ? cause.message
    : ""
  return own === "" ? reason.message ?? reason._tag : own
}

/** Why a first query failed: text without any of `secrets`, and whether trying again can help. */
export const explain = (
  error: SqlError.SqlError | Schema.SchemaError | Cause.NoSuchElementError,
  secrets: ReadonlyArray<string>
): { readonly detail: string; readonly isRetryable: boolean } => {
  const isSql = error._tag === "SqlError"
  const text = isSql ? reasonText(error.reason) : error.message
  return {
    detail: secrets.reduce((rest, secret) => rest.replaceAll(secret, "***"), text),
    isRetryable: isSql && error.reason.isRetryable
  }
}
