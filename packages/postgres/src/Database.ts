/**
 * One database for the whole process: a PostgreSQL server by URL, or embedded PGlite in a folder.
 *
 * The layers provide the same `PgClient` for both, so all SQL above runs unchanged. A layer answers only after the
 * database has: a wrong address, a wrong password or a folder in use fails here and typed, not at the first query.
 * It creates no table (see `Migrations`), and it never retries: whether to wait is the caller's choice.
 */
import type { PGlite } from "@electric-sql/pglite"
import { PgClient } from "@effect/sql-pg"
import { type Cause, Config, Context, Duration, Effect, Layer, Option, type Redacted, Schema, type Scope } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, type SqlError, SqlSchema } from "effect/sql"
import type { Buffer } from "node:buffer"
import { DatabaseInUse, type DatabaseError, DatabaseUnavailable } from "./DatabaseError.ts"
import type { MigrationError } from "./MigrationError.ts"
import * as Migrations from "./Migrations.ts"
import { adaptClient } from "./internal/adaptClient.ts"
import { explain, labelOfUrl, placeOf, secretsOf } from "./internal/connectionUrl.ts"
import { acquireDirectoryLock } from "./internal/directoryLock.ts"
import { tooOld } from "./internal/nodeVersion.ts"
import { PgliteHub } from "./internal/pglite/PgliteHub.ts"

/** What the layers of a database provide. */
export type DatabaseServices = Database | PgClient.PgClient | SqlClient.SqlClient

/** Options of every connection pool. */
export interface PoolOptions {
  /** Connections at the most; 10 by default. On PGlite they share one backend and only queue differently. */
  readonly maxConnections?: number
  /** What the server's views call this program; "purser" by default. */
  readonly applicationName?: string
  /** 5 seconds by default. */
  readonly connectTimeout?: Duration.Input
  /**
   * How long a server keeps a transaction open whose program says nothing more; 5 seconds by default. A frozen program, or one whose machine is
   * gone without a word, holds its locks so long and no longer. Nothing of this reaches PGlite, which is in the program.
   */
  readonly silentTransaction?: Duration.Input
}

/** Options of the embedded database. */
export interface EmbeddedOptions extends PoolOptions {
  /** The folder that holds the cluster and its lock; made if absent. */
  readonly dataDir: string
  /** False trades the last transactions at a power loss for speed; a killed process loses nothing either way. True by default. */
  readonly fsync?: boolean
}

/** A server, or the embedded database: what `Database.layer` takes. */
export type DatabaseOptions = EmbeddedOptions | (PoolOptions & { readonly url: Redacted.Redacted })

const Version = Schema.Struct({ version: Schema.String })

const poolConfig = (options: PoolOptions) => ({
  maxConnections: options.maxConnections ?? 10,
  applicationName: options.applicationName ?? "purser",
  connectTimeout: options.connectTimeout ?? "5 seconds",
  startupParameters: { TimeZone: "UTC" }
})

/** Opens the pool and asks the database who it is. */
const connect = Effect.fnUntraced(function*(
  about: { readonly kind: "postgres" | "pglite"; readonly label: string },
  config: PgClient.PgPoolConfig
) {
  const unavailable = (error: SqlError.SqlError | Schema.SchemaError | Cause.NoSuchElementError) =>
    new DatabaseUnavailable({ database: about.label, ...explain(error, secretsOf(config.url)) })
  const open = Effect.gen(function*() {
    const sql = yield* adaptClient(yield* PgClient.make(config), about.kind)
    const ask = SqlSchema.findOne({
      Request: Schema.Void,
      Result: Version,
      execute: () => sql`select current_setting('server_version') as version`
    })
    const { version } = yield* ask(undefined)
    return Context.make(PgClient.PgClient, sql).pipe(
      Context.add(SqlClient.SqlClient, sql),
      Context.add(Database, Database.of({ ...about, version }))
    )
  })
  return yield* Effect.mapError(open, unavailable)
})

const connectPglite = (label: string, options: PoolOptions, db: PGlite) =>
  Effect.flatMap(
    Effect.acquireRelease(Effect.sync(() => new PgliteHub(db)), (hub) => Effect.sync(() => hub.close())),
    (hub) =>
      connect({ kind: "pglite", label }, {
        ...poolConfig(options),
        stream: hub.stream,
        ssl: false,
        username: "postgres",
        database: "postgres",
        // Spans name a server; this one is in the program.
        host: "pglite",
        port: 0,
        // There is one backend: sharing a connection saves a turn of the event loop per statement and costs nothing.
        multiplex: true
      })
  )

/** PGlite is there only where somebody wants it: a program with a server neither loads it nor has to install it. */
const loadCluster = Effect.tryPromise({
  try: () => import("./internal/pglite/cluster.ts"),
  catch: (cause) => ({ detail: `the embedded database needs the package @electric-sql/pglite: ${cause instanceof Error ? cause.message : String(cause)}` })
})

const unavailableAs = (database: string) => (error: { readonly detail: string }) =>
  Effect.fail(new DatabaseUnavailable({ database, detail: error.detail, isRetryable: false }))

/** Said before anything else is tried, since what an old Node lacks is met by chance, and in words about that. */
const ensureNode = (database: string) =>
  Effect.suspend(() => {
    const detail = tooOld(process.versions.node)
    return detail === undefined ? Effect.void : unavailableAs(database)({ detail })
  })

const openEmbedded = Effect.fnUntraced(function*(options: EmbeddedOptions, withSchema: boolean) {
  const label = `pglite in ${options.dataDir}`
  const unavailable = unavailableAs(label)
  yield* ensureNode(label)
  yield* acquireDirectoryLock(options.dataDir, "db").pipe(
    Effect.catchTags({
      LockHeld: ({ owner }) => Effect.fail(new DatabaseInUse({ dataDir: options.dataDir, ...owner })),
      LockFailed: unavailable
    })
  )
  const open = Effect.flatMap(loadCluster, ({ openCluster }) => openCluster({ dataDir: options.dataDir, fsync: options.fsync ?? true, withSchema }))
  return yield* connectPglite(label, options, yield* Effect.catch(open, unavailable))
})

const openMemory = Effect.fnUntraced(function*(archive: Buffer | undefined) {
  const label = "pglite in memory"
  yield* ensureNode(label)
  const open = Effect.flatMap(loadCluster, ({ openEmptyCluster, openMemoryCluster }) => archive === undefined ? openEmptyCluster : openMemoryCluster(archive))
  return yield* connectPglite(label, {}, yield* Effect.catch(open, unavailableAs(label)))
})

const openUrl = Effect.fnUntraced(function*(url: Redacted.Redacted, options: PoolOptions) {
  const label = yield* labelOfUrl(url)
  yield* ensureNode(label)
  // Said beside the URL, since spans name the server by these fields alone.
  const pool = poolConfig(options)
  const silentMs = Duration.toMillis(Duration.fromInputUnsafe(options.silentTransaction ?? "5 seconds"))
  const startupParameters = { ...pool.startupParameters, idle_in_transaction_session_timeout: String(Math.ceil(silentMs)) }
  return yield* connect({ kind: "postgres", label }, { ...pool, startupParameters, url, ...placeOf(url) })
})

const layerOf = <E>(
  open: Effect.Effect<Context.Context<DatabaseServices>, E, Scope.Scope | Reactivity.Reactivity>
): Layer.Layer<DatabaseServices, E> => Layer.provide(Layer.effectContext(open), Reactivity.layer)

const configuration = Config.all({
  url: Config.option(Config.Redacted("PURSER_DATABASE_URL")),
  dataDir: Config.NonEmptyString("PURSER_DATA_DIR").pipe(Config.withDefault(".purser")),
  migrate: Config.Boolean("PURSER_MIGRATE").pipe(Config.withDefault(true)),
  fsync: Config.Boolean("PURSER_PGLITE_FSYNC").pipe(Config.withDefault(true)),
  maxConnections: Config.schema(Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 1, maximum: 1000 })), "PURSER_DATABASE_POOL").pipe(
    Config.withDefault(10)
  ),
  connectTimeout: Config.Duration("PURSER_DATABASE_CONNECT_TIMEOUT").pipe(Config.withDefault(Duration.seconds(5)))
})

/** Which database this is. `label` is safe to log; `version` is PostgreSQL's, like "18.4". */
export class Database extends Context.Service<Database, {
  readonly kind: "postgres" | "pglite"
  readonly label: string
  readonly version: string
}>()("@purser/postgres/Database") {
  /** A PostgreSQL server. Fails with `DatabaseUnavailable` when it is down, or refuses the name, password or database. */
  static readonly layerUrl = (url: Redacted.Redacted, options: PoolOptions = {}): Layer.Layer<DatabaseServices, DatabaseUnavailable> =>
    layerOf(openUrl(url, options))

  /** PGlite in a folder. Fails with `DatabaseInUse` at once when a living process has it open. */
  static readonly layerEmbedded = (options: EmbeddedOptions): Layer.Layer<DatabaseServices, DatabaseError> =>
    layerOf(openEmbedded(options, false))

  /** PGlite in memory, empty, gone with the scope: for tests and dry runs. */
  static readonly layerMemory: Layer.Layer<DatabaseServices, DatabaseUnavailable> = layerOf(openMemory(undefined))

  /** PGlite in memory that begins as a copy of a cluster: of the archive (tar, not compressed) of its closed folder. */
  static readonly layerArchive = (archive: Buffer): Layer.Layer<DatabaseServices, DatabaseUnavailable> => layerOf(openMemory(archive))

  /** A server if there is a `url`, else PGlite in `dataDir`. */
  static readonly layer = (options: DatabaseOptions): Layer.Layer<DatabaseServices, DatabaseError> =>
    "url" in options ? Database.layerUrl(options.url, options) : Database.layerEmbedded(options)

  /**
   * From the environment: `PURSER_DATABASE_URL`, else PGlite in `PURSER_DATA_DIR` (`.purser`); `PURSER_DATABASE_POOL`
   * (10 connections), `PURSER_DATABASE_CONNECT_TIMEOUT` (5 seconds), `PURSER_PGLITE_FSYNC` (`off` trades the last
   * transactions at a power loss for speed). Purser's schema is brought up to date first, unless `PURSER_MIGRATE` is off.
   */
  static readonly layerConfig: Layer.Layer<DatabaseServices, DatabaseError | MigrationError | Config.ConfigError> = Layer.unwrap(
    Effect.map(configuration, ({ migrate, url, ...options }) => {
      // Migrations would bring a new folder there too, in a second and more.
      const database = Option.isSome(url) ? Database.layerUrl(url.value, options) : layerOf(openEmbedded(options, migrate))
      return migrate ? Layer.provideMerge(Migrations.layer, database) : database
    })
  )
}
