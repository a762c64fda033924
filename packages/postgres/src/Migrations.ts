/**
 * Brings a database to the schema that this code needs: forward only, all or nothing, once.
 *
 * All pending migrations run in one transaction, behind an advisory lock that the transaction holds, so of several
 * processes that start together one migrates and the others find nothing to do. The `Migrator` of `effect/sql` is not
 * used: it locks its table but accepts a database that is newer than the code, and it needs its table to exist before
 * the schema does. There is no way back: a mistake is mended by the next migration.
 */
import { Effect, Layer, Schema } from "effect"
import { SqlClient, type SqlError, SqlSchema } from "effect/sql"
import { explain } from "./internal/connectionUrl.ts"
import { type MigrationError, MigrationFailed, SchemaDiffers, SchemaTooNew } from "./MigrationError.ts"
import { migrations } from "./migrations/index.ts"

/** Migrations by `0001_verb_noun`; the number is the schema version that the migration makes. */
export type MigrationRecord = Readonly<Record<string, Effect.Effect<unknown, SqlError.SqlError, SqlClient.SqlClient>>>

/** One migration that was applied. */
export interface AppliedMigration {
  readonly version: number
  readonly name: string
}

interface Step extends AppliedMigration {
  readonly effect: MigrationRecord[string]
}

/** The advisory lock of Purser's migrations: the letters "purser" as a number. */
const advisoryLock = 123_649_733_649_778n

const Applied = Schema.Struct({ version: Schema.Int, name: Schema.String })

const steps = (record: MigrationRecord): ReadonlyArray<Step> =>
  Object.entries(record).map(([key, effect]) => {
    const [, version, name] = /^(\d+)_(.+)$/.exec(key) ?? []
    if (version === undefined || name === undefined) throw new Error(`Bug: "${key}" is no name of a migration`)
    return { version: Number(version), name, effect }
  }).sort((a, b) => a.version - b.version)

const failed = (migration: string) => (error: Parameters<typeof explain>[0]) =>
  new MigrationFailed({ migration, ...explain(error, []) })

const listFailed = failed("the list of migrations")

/** The migrations that the database has, oldest first; none when it is new. */
const applied = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  // Not to_regclass: it may answer from a cache that is older than the advisory lock, the catalog's tables may not.
  const found = yield* sql`select 1 as found from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'purser' and c.relname = 'migrations'`
  if (found.length === 0) return []
  const list = SqlSchema.findAll({
    Request: Schema.Void,
    Result: Applied,
    execute: () => sql`select version, name from purser.migrations order by version`
  })
  return yield* list(undefined)
}).pipe(Effect.mapError(listFailed))

/** What is still to do; refuses a database that has a history of its own. */
const pendingOf = (
  known: ReadonlyArray<Step>,
  done: ReadonlyArray<AppliedMigration>
): Effect.Effect<ReadonlyArray<Step>, SchemaTooNew | SchemaDiffers> => {
  const databaseVersion = done.at(-1)?.version ?? 0
  const codeVersion = known.at(-1)?.version ?? 0
  if (databaseVersion > codeVersion) return Effect.fail(new SchemaTooNew({ databaseVersion, codeVersion }))
  for (const { name, version } of done) {
    const inCode = known.find((step) => step.version === version)?.name ?? "absent"
    if (inCode !== name) return Effect.fail(new SchemaDiffers({ version, inDatabase: name, inCode }))
  }
  return Effect.succeed(known.filter((step) => step.version > databaseVersion))
}

const migrate = Effect.fnUntraced(function*(known: ReadonlyArray<Step>) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`select pg_advisory_xact_lock(${advisoryLock})`.pipe(Effect.mapError(listFailed))
  const pending = yield* pendingOf(known, yield* applied)
  yield* sql`create schema if not exists purser`.pipe(
    Effect.andThen(sql`create table if not exists purser.migrations (
      version integer primary key, name text not null, applied_at timestamptz not null default clock_timestamp())`),
    Effect.mapError(listFailed)
  )
  for (const { effect, name, version } of pending) {
    yield* effect.pipe(
      Effect.andThen(sql`insert into purser.migrations ${sql.insert({ version, name })}`),
      Effect.mapError(failed(`migration ${version} (${name})`)),
      Effect.withSpan(`Migrations.${name}`)
    )
  }
  return pending.map(({ name, version }): AppliedMigration => ({ name, version }))
})

/**
 * Applies what is missing and answers it, oldest first. Safe to call from any number of processes at once. A database
 * that is up to date is only read.
 */
export const run = Effect.fn("Migrations.run")(function*(record: MigrationRecord = migrations) {
  const sql = yield* SqlClient.SqlClient
  const known = steps(record)
  const pending = yield* pendingOf(known, yield* applied)
  if (pending.length === 0) return []
  return yield* sql.withTransaction(migrate(known)).pipe(
    Effect.catchTag("SqlError", (error) => Effect.fail(listFailed(error)))
  )
})

/** The schema version that this code makes. */
export const codeVersion: number = steps(migrations).at(-1)?.version ?? 0

/** The schema version of the database; 0 when it has none. */
export const schemaVersion: Effect.Effect<number, MigrationFailed, SqlClient.SqlClient> = Effect.map(
  applied,
  (done) => done.at(-1)?.version ?? 0
)

/** Migrates while the layer is built, before anything that is provided after it. */
export const layer: Layer.Layer<never, MigrationError, SqlClient.SqlClient> = Layer.effectDiscard(run())

/** `layer` with other migrations than Purser's. */
export const layerWith = (record: MigrationRecord): Layer.Layer<never, MigrationError, SqlClient.SqlClient> =>
  Layer.effectDiscard(run(record))
