/**
 * Fresh databases for tests, one per layer that is built: PGlite in memory, and a database of its own on a real server.
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
import type { MigrationError } from "./MigrationError.ts"
import * as Migrations from "./Migrations.ts"

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

const administer = (server: Redacted.Redacted, statement: (sql: PgClient.PgClient) => Effect.Effect<unknown, unknown>) =>
  Effect.flatMap(PgClient.PgClient, statement).pipe(
    Effect.orDie,
    Effect.provide(Database.layerUrl(server, { maxConnections: 1, applicationName: "purser tests" }))
  )

const withDatabase = (server: Redacted.Redacted, name: string): Redacted.Redacted => {
  const url = new URL(Redacted.value(server))
  url.pathname = `/${name}`
  return Redacted.make(url.href)
}

/** The URL of a new, empty database that is dropped with the scope. For programs that a test starts as processes. */
export const postgresUrl = Effect.gen(function*() {
  const server = yield* serverUrl
  const name = `purser_test_${randomUUID().replaceAll("-", "")}`
  yield* Effect.acquireRelease(
    administer(server, (sql) => sql`create database ${sql(name)}`),
    () => Effect.orDie(administer(server, (sql) => sql`drop database if exists ${sql(name)} with (force)`))
  )
  return withDatabase(server, name)
})

/** PGlite in memory, without tables. */
export const layerPgliteEmpty: Layer.Layer<DatabaseServices, TestDatabaseError> = Database.layerMemory

/** A database of a real server, without tables. */
export const layerPostgresEmpty: Layer.Layer<DatabaseServices, TestDatabaseError> = Layer.unwrap(
  Effect.map(postgresUrl, (url) => Database.layerUrl(url))
)

const migrated = <E>(layer: Layer.Layer<DatabaseServices, E>) => Layer.provideMerge(Migrations.layer, layer)

/** PGlite in memory with Purser's schema. */
export const layerPglite = migrated(layerPgliteEmpty)

/** A database of a real server with Purser's schema. */
export const layerPostgres = migrated(layerPostgresEmpty)

/** Both kinds, without tables. */
export const layersEmpty: ReadonlyArray<NamedLayer<TestDatabaseError>> = [
  ["pglite", layerPgliteEmpty],
  ["postgres", layerPostgresEmpty]
]

/** Both kinds, with Purser's schema: what every test of a driver loops over. */
export const layers: ReadonlyArray<NamedLayer<TestDatabaseError | MigrationError>> = [
  ["pglite", layerPglite],
  ["postgres", layerPostgres]
]
