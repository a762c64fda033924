/**
 * Opens the PGlite cluster of a folder, and makes it first if there is none.
 *
 * A new cluster grows in a sibling folder and takes its name by a rename when it is whole and on the disk: a crash at
 * any moment leaves either no cluster or a good one. The caller holds the folder's lock.
 */
import { PGlite } from "@electric-sql/pglite"
import { NodeFS } from "@electric-sql/pglite/nodefs"
import { Effect, Schema } from "effect"
import type { Buffer } from "node:buffer"
import { randomUUID } from "node:crypto"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { promisify } from "node:util"
import { DurableNodeFs, startParams } from "./DurableNodeFs.ts"
import { loadSchemaSeed, loadSeed } from "./seed.ts"
import { readTar } from "./tar.ts"

/** The cluster could not be made or opened. */
export class ClusterFailed extends Schema.TaggedError<ClusterFailed>("@purser/postgres/Cluster/ClusterFailed")("ClusterFailed", {
  detail: Schema.String
}) {}

const clusterName = "db"
const unfinishedPrefix = `${clusterName}.new-`

const failed = (cause: unknown) => new ClusterFailed({ detail: cause instanceof Error ? cause.message : String(cause) })

const flushFolder = (folder: string): void => {
  // Windows cannot open a folder, and its renames are flushed with the file system's journal.
  if (process.platform === "win32") return
  const descriptor = Fs.openSync(folder, "r")
  Fs.fsyncSync(descriptor)
  Fs.closeSync(descriptor)
}

/** Writes the archive's folders and files below `folder`; answers their places. Nothing is flushed. */
const unpack = (archive: Buffer, folder: string) => {
  const folders = [folder]
  const files: Array<string> = []
  Fs.mkdirSync(folder, { mode: 0o700 })
  for (const { data, path } of readTar(archive)) {
    const target = Path.join(folder, path)
    if (data === undefined) {
      Fs.mkdirSync(target, { recursive: true, mode: 0o700 })
      folders.push(target)
    } else {
      Fs.writeFileSync(target, data, { mode: 0o600 })
      files.push(target)
    }
  }
  return { files, folders }
}

/** By descriptors: where yarn stands in for the file system (Plug'n'Play), a handle of `fs/promises` cannot be flushed. */
const [openFile, flush, closeFile] = [promisify(Fs.open), promisify(Fs.fsync), promisify(Fs.close)]

/** Flushes written files. Many at a time share a commit of the file system's journal; one after the other each waits for its own. */
const flushFiles = (files: ReadonlyArray<string>) =>
  Effect.forEach(files, (file) =>
    Effect.tryPromise({
      try: () => openFile(file, "r+").then((descriptor) => flush(descriptor).finally(() => closeFile(descriptor))),
      catch: failed
    }), { concurrency: 64, discard: true })

const removeUnfinished = (dataDir: string): void => {
  for (const name of Fs.readdirSync(dataDir)) {
    if (name.startsWith(unfinishedPrefix)) Fs.rmSync(Path.join(dataDir, name), { recursive: true, force: true })
  }
}

/** What a folder's cluster is to be. */
interface ClusterOptions {
  readonly dataDir: string
  /** With it, what is committed survives a power loss. */
  readonly fsync: boolean
  /** A new one begins with the schema, where an archive of it is at hand. */
  readonly withSchema: boolean
}

/** Makes the cluster of `dataDir` unless it is there; answers its folder. */
const ensureCluster = Effect.fnUntraced(function*({ dataDir, fsync, withSchema }: ClusterOptions) {
  const cluster = Path.join(dataDir, clusterName)
  yield* Effect.try({ try: () => removeUnfinished(dataDir), catch: failed })
  if (yield* Effect.sync(() => Fs.existsSync(cluster))) return cluster
  const archive = (withSchema ? yield* loadSchemaSeed : undefined) ?? (yield* loadSeed)
  const unfinished = Path.join(dataDir, `${unfinishedPrefix}${randomUUID()}`)
  const { files, folders } = yield* Effect.try({ try: () => unpack(archive, unfinished), catch: failed })
  if (fsync) yield* flushFiles(files)
  yield* Effect.try({
    try: () => {
      if (fsync) folders.forEach(flushFolder)
      Fs.renameSync(unfinished, cluster)
      if (fsync) flushFolder(dataDir)
    },
    catch: failed
  })
  return cluster
})

const scoped = (open: () => Promise<PGlite>) =>
  Effect.acquireRelease(
    Effect.tryPromise({ try: open, catch: failed }),
    (db) => Effect.ignore(Effect.tryPromise(() => db.close()))
  )

/** The cluster in `dataDir`, open until the scope closes. */
export const openCluster = Effect.fnUntraced(function*(options: ClusterOptions) {
  const cluster = yield* ensureCluster(options)
  return yield* scoped(() =>
    PGlite.create({ fs: options.fsync ? new DurableNodeFs(cluster) : new NodeFS(cluster), startParams: startParams(options) })
  )
})

/** A cluster in memory that begins as this archive, gone with the scope. */
export const openMemoryCluster = (archive: Buffer) =>
  scoped(() => PGlite.create({ loadDataDir: new Blob([new Uint8Array(archive)], { type: "application/x-tar" }) }))

/** An empty cluster in memory, gone with the scope. */
export const openEmptyCluster = Effect.flatMap(loadSeed, openMemoryCluster)
