/**
 * The proxy's own database: a PostgreSQL URL or an embedded folder that is not the ledger's, so that neither shares the
 * other's failures. It is brought up to date when it is opened.
 */
import { Database, type DatabaseError, type DatabaseServices, type MigrationError, Migrations } from "@purser/postgres"
import { Config, Duration, Effect, Layer, Option, Schema } from "effect"
import { migrations } from "./migrations/index.ts"

const configuration = Config.all({
  url: Config.option(Config.Redacted("PURSER_PROXY_DATABASE_URL")),
  dataDir: Config.NonEmptyString("PURSER_PROXY_DATA_DIR").pipe(Config.withDefault(".purser-proxy")),
  fsync: Config.Boolean("PURSER_PROXY_PGLITE_FSYNC").pipe(Config.withDefault(true)),
  maxConnections: Config.schema(Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 1, maximum: 1000 })), "PURSER_PROXY_DATABASE_POOL").pipe(
    Config.withDefault(4)
  )
})

/** Brings any database to the proxy's schema. */
export const migrated = <E>(database: Layer.Layer<DatabaseServices, E>): Layer.Layer<DatabaseServices, E | MigrationError> =>
  Layer.provideMerge(Migrations.layerWith(migrations), database)

/** The folder of the embedded store, as configured. */
export const proxyDataDir = Config.map(configuration, ({ dataDir, url }) => Option.isSome(url) ? undefined : dataDir)

/** `PURSER_PROXY_DATABASE_URL`, else PGlite in `PURSER_PROXY_DATA_DIR` (`.purser-proxy`). */
export const layerConfig: Layer.Layer<DatabaseServices, DatabaseError | MigrationError | Config.ConfigError> = Layer.unwrap(
  Effect.map(configuration, ({ url, ...options }) => {
    const pool = { ...options, applicationName: "purser proxy", connectTimeout: Duration.seconds(5) }
    return migrated(Database.layer(Option.isSome(url) ? { ...pool, url: url.value } : pool))
  })
)
