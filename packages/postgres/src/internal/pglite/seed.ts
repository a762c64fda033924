/**
 * A new cluster as one archive: empty, or with Purser's schema, which its migrations need more than a second for.
 *
 * `initdb` in wasm takes seconds, unpacking its result takes a fraction of one. What is published has the archive beside
 * this module; in the workspace it is kept beside the package's dependencies (or in `PURSER_CACHE_DIR`). It is named by
 * the version of PGlite that made it, written under another name and renamed, and its checksum is tested when it is read,
 * so that half of one is never used. It is only a shortcut: without it, the same archive is made in a temporary folder.
 */
import { PGlite } from "@electric-sql/pglite"
import { NodeFS } from "@electric-sql/pglite/nodefs"
import { Config, Effect } from "effect"
import type { Buffer } from "node:buffer"
import { randomUUID } from "node:crypto"
import * as Fs from "node:fs"
import { createRequire } from "node:module"
import * as Os from "node:os"
import * as Path from "node:path"
import * as Zlib from "node:zlib"
import { schemaHash } from "../schemaHash.ts"
import { type TarEntry, writeTar } from "./tar.ts"

const packageFolder = Path.resolve(import.meta.dirname, "../../..")

const pgliteVersion = (): string => {
  const manifest: unknown = JSON.parse(
    Fs.readFileSync(Path.join(Path.dirname(createRequire(import.meta.url).resolve("@electric-sql/pglite")), "../package.json"), "utf8")
  )
  return typeof manifest === "object" && manifest !== null && "version" in manifest ? String(manifest.version) : "unknown"
}

const seedName = Effect.sync(() => `single-${pgliteVersion()}.tar.gz`)

/** Where the archive of this version is kept. */
export const seedFile = Effect.gen(function*() {
  const folder = yield* Config.String("PURSER_CACHE_DIR").pipe(
    Config.withDefault(Path.join(packageFolder, "node_modules/.cache/purser"))
  )
  return Path.join(folder, yield* seedName)
})

/** How the names of archives with the schema begin. */
export const schemaPrefix = "schema-"

/** Where the archive with this code's schema is kept; not compressed. */
export const schemaFile = Effect.gen(function*() {
  const seed = yield* seedFile
  return Path.join(Path.dirname(seed), `${schemaPrefix}${yield* schemaHash}-${Path.basename(seed, ".gz")}`)
})

/** Its name where it is published, beside this module; compressed. */
export const shippedSchemaName = Effect.map(seedName, (name) => `${schemaPrefix}${name}`)

const read = (file: string) => Effect.try(() => Zlib.gunzipSync(Fs.readFileSync(file)))
const shipped = Effect.flatMap(seedName, (name) => read(Path.join(import.meta.dirname, name)))

const entriesOf = (folder: string): ReadonlyArray<TarEntry> =>
  Fs.readdirSync(folder, { recursive: true, withFileTypes: true }).map((entry) => {
    const file = Path.join(entry.parentPath, entry.name)
    const path = Path.relative(folder, file).split(Path.sep).join("/")
    return entry.isDirectory() ? { path: `${path}/`, data: undefined } : { path, data: Fs.readFileSync(file) }
  }).sort((one, other) => one.path < other.path ? -1 : 1)

/** The archive of a closed cluster. */
export const archiveOf = (folder: string): Buffer => writeTar(entriesOf(folder))

/** The databases from which others are made are two thirds of a new cluster's files. PGlite has one database, and makes no others. */
const dropTemplates = (db: PGlite) =>
  Effect.forEach(
    ["template0", "template1"].flatMap((name) => [`alter database ${name} is_template false`, `drop database ${name}`]),
    (statement) => Effect.promise(() => db.exec(statement)),
    { discard: true }
  )

/**
 * Runs initdb; seconds. The cluster is closed before it is read: one that PGlite dumps while it is open begins with a
 * recovery, which flushes each of its files.
 */
const initdb = Effect.acquireUseRelease(
  Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "purser-initdb-"))),
  (folder) =>
    Effect.promise(() => PGlite.create({ fs: new NodeFS(folder) })).pipe(
      Effect.flatMap((db) => Effect.andThen(dropTemplates(db), Effect.promise(() => db.close()))),
      Effect.andThen(Effect.sync(() => archiveOf(folder)))
    ),
  (folder) => Effect.sync(() => Fs.rmSync(folder, { recursive: true, force: true }))
)

const stored = Effect.flatMap(seedFile, read)

/** The archive of an empty cluster, from a file if there is a whole one. */
export const loadSeed: Effect.Effect<Buffer> = shipped.pipe(Effect.catch(() => stored), Effect.catch(() => initdb))

/** The archive of a cluster with the schema of this code, or of an earlier one of it; undefined when there is none, since to make it takes longer than to migrate. */
export const loadSchemaSeed: Effect.Effect<Buffer | undefined> = Effect.flatMap(shippedSchemaName, (name) => read(Path.join(import.meta.dirname, name))).pipe(
  Effect.catch(() => Effect.flatMap(schemaFile, (file) => Effect.try(() => Fs.readFileSync(file)))),
  Effect.catchCause(() => Effect.succeed(undefined))
)

/** Makes the cached archive unless a whole one is there; answers its path. */
export const ensureSeed = Effect.gen(function*() {
  const file = yield* seedFile
  if (yield* Effect.isSuccess(stored)) return file
  const archive = yield* initdb
  yield* Effect.try(() => {
    Fs.mkdirSync(Path.dirname(file), { recursive: true })
    const unfinished = `${file}.${randomUUID()}`
    Fs.writeFileSync(unfinished, Zlib.gzipSync(archive, { level: 6 }), { flush: true })
    Fs.renameSync(unfinished, file)
  })
  return file
})
