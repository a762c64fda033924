/**
 * A new, empty cluster as one archive.
 *
 * `initdb` in wasm takes seconds, unpacking its result takes a fraction of one. What is published has the archive beside
 * this module; in the workspace it is kept beside the package's dependencies (or in `PURSER_CACHE_DIR`). It is named by
 * the version of PGlite that made it, written under another name and renamed, and its checksum is tested when it is read,
 * so that half of one is never used. It is only a shortcut: without it, the same archive is made in memory.
 */
import { PGlite } from "@electric-sql/pglite"
import { Config, Effect } from "effect"
import { Buffer } from "node:buffer"
import { randomUUID } from "node:crypto"
import * as Fs from "node:fs"
import { createRequire } from "node:module"
import * as Path from "node:path"
import * as Zlib from "node:zlib"

const packageFolder = Path.resolve(import.meta.dirname, "../../..")

const pgliteVersion = (): string => {
  const manifest: unknown = JSON.parse(
    Fs.readFileSync(Path.join(Path.dirname(createRequire(import.meta.url).resolve("@electric-sql/pglite")), "../package.json"), "utf8")
  )
  return typeof manifest === "object" && manifest !== null && "version" in manifest ? String(manifest.version) : "unknown"
}

const seedName = Effect.sync(() => `pglite-${pgliteVersion()}.tar.gz`)

/** Where the archive of this version is kept. */
export const seedFile = Effect.gen(function*() {
  const folder = yield* Config.String("PURSER_CACHE_DIR").pipe(
    Config.withDefault(Path.join(packageFolder, "node_modules/.cache/purser"))
  )
  return Path.join(folder, yield* seedName)
})

const read = (file: string) => Effect.try(() => Zlib.gunzipSync(Fs.readFileSync(file)))
const shipped = Effect.flatMap(seedName, (name) => read(Path.join(import.meta.dirname, name)))

/** Runs initdb in memory; seconds. The archive is a plain tar. */
const initdb = Effect.promise(() =>
  PGlite.create().then((db) =>
    db.exec("CHECKPOINT")
      .then(() => db.dumpDataDir("none"))
      .then((archive) => archive.arrayBuffer())
      .then((bytes) => db.close().then(() => Buffer.from(bytes)))
  )
)

const stored = Effect.flatMap(seedFile, read)

/** The archive of an empty cluster, from a file if there is a whole one. */
export const loadSeed: Effect.Effect<Buffer> = shipped.pipe(Effect.catch(() => stored), Effect.catch(() => initdb))

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
