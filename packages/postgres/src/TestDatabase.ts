/**
 * Fresh databases for tests, one per layer that is built: PGlite in memory, and a database of its own on a real server.
 * Those with the schema are copies: its migrations run once (see `internal/schemaTemplate.ts`).
 *
 * The server is the one of `PURSER_TEST_DATABASE_URL` (whose user may create databases), which the test run's set-up
 * fills in; without it each layer starts a server for itself. Never give it the URL of a server that you care about.
 */
import { PgClient } from "@effect/sql-pg"
import { Config, Effect, Layer, Option, Redacted } from "effect"
import { randomUUID } from "node:crypto"
import { Database, type DatabaseServices } from "./Database.ts"
import type { DatabaseUnavailable } from "./DatabaseError.ts"
import { EmbeddedPostgres, type EmbeddedPostgresFailed } from "./EmbeddedPostgres.ts"
import { ensureTemplate, templateName } from "./internal/schemaTemplate.ts"

/** Why a test database cannot be made. */
export type TestDatabaseError = DatabaseUnavailable | EmbeddedPostgresFailed | Config.ConfigError

/** A test database by the name of its kind. */
export type NamedLayer<E> = readonly [name: "pglite" | "postgres", layer: Layer.Layer<DatabaseServices, E>]

const serverUrl = Effect.gen(function*() {
  const given = yield* Config.option(Config.Redacted("PURSER_TEST_DATABASE_URL"))
  if (Option.isSome(given)) return given.value
  const services = yield* Layer.build(EmbeddedPostgres.layer)
  return yield* Effect.map(EmbeddedPostgres, ({ url }) => url).pipe(Effect.provide(services))
})

const administer = <E>(server: Redacted.Redacted, statement: (sql: PgClient.PgClient) => Effect.Effect<unknown, E, PgClient.PgClient>) =>
  Effect.flatMap(PgClient.PgClient, statement).pipe(
    Effect.orDie,
    Effect.provide(Database.layerUrl(server, { maxConnections: 1, applicationName: "purser tests" }))
  )

const withDatabase = (server: Redacted.Redacted, name: string): Redacted.Redacted => {
  const url = new URL(Redacted.value(server))
  url.pathname = `/${name}`
  return Redacted.make(url.href)
}

/** A database that is dropped with the scope, made by this. */
const scopedDatabase = <E>(make: (sql: PgClient.PgClient, name: string, server: Redacted.Redacted) => Effect.Effect<unknown, E, PgClient.PgClient>) =>
  Effect.gen(function*() {
    const server = yield* serverUrl
    const name = `purser_test_${randomUUID().replaceAll("-", "")}`
    yield* Effect.acquireRelease(
      administer(server, (sql) => make(sql, name, server)),
      () => Effect.orDie(administer(server, (sql) => sql`drop database if exists ${sql(name)} with (force)`))
    )
    return withDatabase(server, name)
  })

/** The URL of a new, empty database that is dropped with the scope. */
export const postgresUrlEmpty = scopedDatabase((sql, name) => sql`create database ${sql(name)}`)

/** The URL of a new database with Purser's schema that is dropped with the scope. For programs that a test starts as processes. */
export const postgresUrl = scopedDatabase(Effect.fnUntraced(function*(sql, name, server) {
  const template = yield* templateName
  // A small database is copied block by block in half the time that the copy of its files takes, with the checkpoint that this needs.
  const copy = sql`create database ${sql(name)} template ${sql(template)} strategy wal_log`
  yield* Effect.catch(copy, () => Effect.andThen(ensureTemplate(template, (other) => withDatabase(server, other)), copy))
}))

/** PGlite in memory, without tables. */
export const layerPgliteEmpty: Layer.Layer<DatabaseServices, TestDatabaseError> = Database.layerMemory

/** A database of a real server, without tables. */
export const layerPostgresEmpty: Layer.Layer<DatabaseServices, TestDatabaseError> = Layer.unwrap(
  Effect.map(postgresUrlEmpty, (url) => Database.layerUrl(url))
)

/** Where the archive is, without PGlite where only servers are asked for. */
const archives = Effect.promise(() => import("./internal/pglite/schemaArchive.ts"))

/** PGlite in memory with Purser's schema. */
export const layerPglite: Layer.Layer<DatabaseServices, TestDatabaseError> = Layer.unwrap(
  Effect.map(Effect.flatMap(archives, ({ schemaArchive }) => schemaArchive), Database.layerArchive)
)

/** A database of a real server with Purser's schema. */
export const layerPostgres: Layer.Layer<DatabaseServices, TestDatabaseError> = Layer.unwrap(
  Effect.map(postgresUrl, (url) => Database.layerUrl(url))
)

/** Makes what the databases with the schema are copied from, once: for the set-up of a test run. */
export const prepare = Effect.gen(function*() {
  const server = yield* serverUrl
  const template = yield* templateName
  yield* administer(server, () => ensureTemplate(template, (name) => withDatabase(server, name)))
  yield* (yield* archives).schemaArchive
}).pipe(Effect.scoped)

/** Both kinds, without tables. */
export const layersEmpty: ReadonlyArray<NamedLayer<TestDatabaseError>> = [
  ["pglite", layerPgliteEmpty],
  ["postgres", layerPostgresEmpty]
]

/** Both kinds, with Purser's schema: what every test of a driver loops over. */
export const layers: ReadonlyArray<NamedLayer<TestDatabaseError>> = [
  ["pglite", layerPglite],
  ["postgres", layerPostgres]
]
