/**
 * One owner per folder, enforced by the operating system.
 *
 * Node has no flock, but the SQLite inside Node takes the file locks of every platform: a lock on a small file in the
 * folder. The kernel releases it with the process, however that dies, so nothing has to be judged stale, two starters
 * cannot both win, and containers of one machine that share the volume exclude each other. Across machines it is as
 * good as the locks of the network file system. It does not protect a folder whose lock file is deleted meanwhile, and
 * POSIX drops the lock if this process itself opens and closes the lock file in any other way: nothing here reads it.
 */
import { Effect, Schedule, Schema } from "effect"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"

interface Connection {
  readonly exec: (sql: string) => void
  readonly close: () => void
}

/** What the owner says about itself; written for error messages, never trusted. */
const Owner = Schema.fromJsonString(Schema.Struct({ pid: Schema.Int, host: Schema.String }))
export type Owner = typeof Owner.Type

/** The lock is held; `owner` is absent when it could not be read. */
export class LockHeld extends Schema.TaggedError<LockHeld>("@purser/postgres/DirectoryLock/LockHeld")("LockHeld", {
  owner: Schema.optionalKey(Schema.Struct({ pid: Schema.Int, host: Schema.String }))
}) {}

/** The folder's file system takes no lock, or the folder cannot be written. */
export class LockFailed extends Schema.TaggedError<LockFailed>("@purser/postgres/DirectoryLock/LockFailed")("LockFailed", {
  detail: Schema.String
}) {}

const detailOf = (cause: unknown): string => cause instanceof Error ? cause.message : String(cause)
const failed = (cause: unknown) => new LockFailed({ detail: detailOf(cause) })

/** SQLITE_BUSY: someone holds the lock. */
const isBusy = (cause: unknown): boolean =>
  typeof cause === "object" && cause !== null && "errcode" in cause && cause.errcode === 5

/** Node 22 announces its SQLite as experimental on stderr; that line would belong to every command of Purser. */
const loadSqlite = (): typeof import("node:sqlite") => {
  const emitWarning = process.emitWarning
  process.emitWarning = () => {}
  const sqlite = process.getBuiltinModule("node:sqlite")
  process.emitWarning = emitWarning
  return sqlite
}

const readOwner = (file: string): Effect.Effect<Owner | undefined> =>
  Effect.try({ try: () => Fs.readFileSync(file, "utf8"), catch: detailOf }).pipe(
    Effect.flatMap(Schema.decodeEffect(Owner)),
    Effect.orElseSucceed(() => undefined)
  )

const open = (file: string): Connection => {
  const { DatabaseSync } = loadSqlite()
  return new DatabaseSync(file)
}

/**
 * Starters that come at the same moment meet in each other's first, shared lock, and each would see a held one. One of
 * them is patient for this long, while the others, who must give way, let go; a real owner costs a starter the wait.
 */
const patienceMs = 250

/** Node's recursive way goes round for ever where a folder is there and takes none, as those of /proc. */
const makeFolder = (path: string): Effect.Effect<void, LockFailed> =>
  Effect.suspend(() => {
    if (Fs.existsSync(path)) return Effect.void
    const made = Effect.try({ try: () => Fs.mkdirSync(path), catch: failed })
    // Somebody else may have made it meanwhile.
    return Effect.andThen(makeFolder(Path.dirname(path)), Effect.catchIf(made, () => Fs.existsSync(path), () => Effect.void))
  })

/** Holds the lock of `directory` (made if absent) under `name` until the scope closes; fails if it is held. */
export const acquireDirectoryLock = Effect.fnUntraced(function*(directory: string, name: string) {
  const ownerFile = Path.join(directory, `${name}.owner.json`)
  yield* makeFolder(Path.resolve(directory))
  // A connection that was refused keeps its shared lock until it is closed, so that each try has its own.
  const tried = Effect.flatMap(
    Effect.try({ try: () => open(Path.join(directory, `${name}.lock`)), catch: failed }),
    (connection) =>
      Effect.try({
        try: () => connection.exec(`PRAGMA busy_timeout=${patienceMs}; PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE;`),
        catch: (cause) => isBusy(cause) ? "busy" as const : failed(cause)
      }).pipe(Effect.as(connection), Effect.onError(() => Effect.sync(() => connection.close())))
  ).pipe(
    Effect.catchIf((error) => error === "busy", () =>
      Effect.flatMap(readOwner(ownerFile), (owner) => Effect.fail(new LockHeld(owner === undefined ? {} : { owner }))))
  )
  yield* Effect.acquireRelease(
    // Where nobody has ever said that the folder is theirs, starters have only met each other: on a busy machine none of them won.
    Effect.retry(tried, {
      while: (error) => error._tag === "LockHeld" && error.owner === undefined,
      schedule: Schedule.spaced(50).pipe(Schedule.jittered, Schedule.upTo({ times: 20 }))
    }),
    (connection) => Effect.sync(() => connection.close())
  )
  const owner: Owner = { pid: process.pid, host: Os.hostname() }
  yield* Effect.try({ try: () => Fs.writeFileSync(ownerFile, JSON.stringify(owner)), catch: failed })
})
