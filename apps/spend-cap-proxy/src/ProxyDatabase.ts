/**
 * The proxy's own database: a PostgreSQL URL or an embedded folder that is not the ledger's, so that neither shares the
 * other's failures. It is brought up to date when it is opened.
 */
import { Database, type DatabaseError, type DatabaseServices, type MigrationError, Migrations } from "@purser/postgres"
import { Clock, Config, Duration, Effect, Layer, Option, Schema } from "effect"
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

/** The folder of the proxy's store is open elsewhere: by a proxy, or by `purser vault`. */
export class ProxyStoreInUse extends Schema.TaggedError<ProxyStoreInUse>("@purser/spend-cap-proxy/ProxyStoreInUse")("ProxyStoreInUse", {
  dataDir: Schema.String,
  pid: Schema.optionalKey(Schema.Int)
}) {
  override get message() {
    return `the folder ${this.dataDir} (PURSER_PROXY_DATA_DIR) is in use by ${this.pid === undefined ? "another process" : `process ${this.pid}`}; several proxies need a PostgreSQL server (PURSER_PROXY_DATABASE_URL)`
  }
  get isRetryable() {
    return true
  }
}

/** The proxy's store does not open. */
export class ProxyStoreUnavailable extends Schema.TaggedError<ProxyStoreUnavailable>("@purser/spend-cap-proxy/ProxyStoreUnavailable")("ProxyStoreUnavailable", {
  setting: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `the proxy's store (${this.setting}) is not available: ${this.detail}`
  }
  get isRetryable() {
    return true
  }
}

/** Why the store does not open. */
export type ProxyStoreError = ProxyStoreInUse | ProxyStoreUnavailable

/** The database's own errors name the ledger's settings. */
const inOurWords = (setting: string) => (error: DatabaseError): ProxyStoreError =>
  error._tag === "DatabaseInUse"
    ? new ProxyStoreInUse({ dataDir: error.dataDir, ...(error.pid === undefined ? {} : { pid: error.pid }) })
    : new ProxyStoreUnavailable({ setting, detail: `${error.database.replaceAll("PURSER_DATABASE_URL", setting)}: ${error.detail}` })

/** How long an owner of the folder is waited for. */
const patienceMs = 10_000

/**
 * Whoever has a folder open for a moment, as `purser vault` has, is waited for. `instead` is asked at each try: what it gives is done in place of waiting.
 */
export const patiently = <A, E>(
  layer: Layer.Layer<A, E>,
  instead: Effect.Effect<((failed: Layer.Layer<A, E>) => Layer.Layer<A, E>) | undefined> = Effect.succeed(undefined)
): Layer.Layer<A, E> => {
  const trying = (untilMs: number): Layer.Layer<A, E> =>
    Layer.catch(Layer.fresh(layer), (error) => {
      const failed: Layer.Layer<A, E> = Layer.effectContext(Effect.fail(error))
      if (!(error instanceof ProxyStoreInUse)) return failed
      return Layer.unwrap(Effect.gen(function*() {
        const other = yield* instead
        if (other !== undefined) return other(failed)
        if ((yield* Clock.currentTimeMillis) >= untilMs) return failed
        yield* Effect.sleep("100 millis")
        return trying(untilMs)
      }))
    })
  return Layer.unwrap(Effect.map(Clock.currentTimeMillis, (nowMs) => trying(nowMs + patienceMs)))
}

/** `PURSER_PROXY_DATABASE_URL`, else PGlite in `PURSER_PROXY_DATA_DIR` (`.purser-proxy`). */
export const layerConfig: Layer.Layer<DatabaseServices, ProxyStoreError | MigrationError | Config.ConfigError> = Layer.unwrap(
  Effect.map(configuration, ({ url, ...options }) => {
    const pool = { ...options, applicationName: "purser proxy", connectTimeout: Duration.seconds(5) }
    const setting = Option.isSome(url) ? "PURSER_PROXY_DATABASE_URL" : "PURSER_PROXY_DATA_DIR"
    return migrated(Layer.catch(Database.layer(Option.isSome(url) ? { ...pool, url: url.value } : pool), (error) => Layer.effectContext(Effect.fail(inOurWords(setting)(error)))))
  })
)
