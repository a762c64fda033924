/**
 * A PostgreSQL server that is stopped hard, started again and failed over, behind an address that stays: a TCP proxy leads to
 * whichever server is in charge. It is the server of `EmbeddedPostgres`, found by what it says of itself, and PostgreSQL's own `pg_ctl`.
 *
 * A standby replicates synchronously: what was acknowledged is on both, and a failover loses nothing of it.
 */
import { Database } from "@purser/postgres"
import { EmbeddedPostgres } from "@purser/postgres/EmbeddedPostgres"
import { freePort, type Proxy, proxyTo } from "@purser/test-e2e/src/Proxy.ts"
import { Effect, Layer, Redacted, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { spawn } from "node:child_process"
import { appendFileSync, chmodSync, chownSync, cpSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"

/** A server, or two, as one address. */
export interface Cluster {
  /** A database of its own at the address. */
  readonly createDatabase: (name: string) => Effect.Effect<string>
  /** The proxy in front of the server. */
  readonly proxy: Proxy
  /** Stops the server and starts it again: `immediate` as a crash does, `fast` as an administrator does. */
  readonly restart: (mode: "immediate" | "fast") => Effect.Effect<void>
  /** Kills the primary and puts its standby in charge. Once, and only with one. */
  readonly failOver: Effect.Effect<void>
  readonly isReplicated: boolean
}

interface Server {
  readonly data: string
  readonly port: number
}

/** Runs `pg_ctl` as the owner of the data folder; dies with what the server said when it fails. */
const control = (bin: string, data: string, ...args: ReadonlyArray<string>): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const { gid, uid } = statSync(data)
    const asRoot = process.getuid?.() === 0
    // The simulator and the proxies live in this process: nothing here may block it.
    const child = spawn(join(bin, "pg_ctl"), [...args, "-D", data, "-w", "-t", "60"], {
      cwd: "/",
      env: { LC_ALL: "C", PATH: process.env["PATH"] ?? "" },
      stdio: "ignore",
      ...(asRoot ? { uid, gid } : {})
    })
    const failed = (why: string) => resume(Effect.die(new Error(`pg_ctl ${args.join(" ")}: ${why}\n${logOf(data)}`)))
    child.once("error", (error) => failed(error.message))
    child.once("exit", (status) => status === 0 ? resume(Effect.void) : failed(`ended with ${status}`))
  })

const logOf = (data: string): string => {
  try {
    return readFileSync(`${data}.log`, "utf8").slice(-2000)
  } catch {
    return ""
  }
}

/** Effects of one statement, on a connection of its own. */
const ask = <A>(url: string, use: (sql: SqlClient.SqlClient) => Effect.Effect<A, unknown>) =>
  Effect.orDie(Effect.scoped(Effect.flatMap(SqlClient.SqlClient, use).pipe(
    Effect.provide(Layer.fresh(Database.layerUrl(Redacted.make(url), { maxConnections: 1, applicationName: "chaos" })))
  )))

const at = (url: string, port: number, database = "postgres"): string => {
  const changed = new URL(url)
  changed.hostname = "127.0.0.1"
  changed.port = String(port)
  changed.pathname = `/${database}`
  return changed.href
}

/** Starts a server with the settings of its folder and these. */
const start = (bin: string, { data, port }: Server): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { gid, uid } = statSync(data)
    appendFileSync(`${data}.log`, "")
    chownSync(`${data}.log`, uid, gid)
    const options = [`port=${port}`, "listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200", "fsync=off", "full_page_writes=off"]
    return control(bin, data, "start", "-l", `${data}.log`, "-o", options.map((option) => `-c ${option}`).join(" "))
  })

/** A second server from a copy of the first one's folder, that follows it. The first is down while it is copied. */
const makeStandby = Effect.fnUntraced(function*(bin: string, primary: Server, port: number, url: string) {
  const standby: Server = { data: `${primary.data}-standby`, port }
  const { password, username } = new URL(url)
  yield* control(bin, primary.data, "stop", "-m", "fast")
  const { gid, uid } = statSync(primary.data)
  cpSync(primary.data, standby.data, { recursive: true, preserveTimestamps: true })
  chmodSync(standby.data, 0o700)
  rmSync(join(standby.data, "postmaster.pid"), { force: true })
  writeFileSync(join(standby.data, "standby.signal"), "")
  appendFileSync(
    join(standby.data, "postgresql.auto.conf"),
    `primary_conninfo = 'host=127.0.0.1 port=${primary.port} user=${username} password=${decodeURIComponent(password)} application_name=standby'\n`
  )
  // Only the first waits for the second: the one that is left alone after a failover must not wait for anybody.
  appendFileSync(join(primary.data, "postgresql.auto.conf"), "synchronous_standby_names = 'standby'\n")
  for (const path of ["", ...readdirSync(standby.data, { recursive: true, encoding: "utf8" })]) chownSync(join(standby.data, path), uid, gid)
  yield* start(bin, primary)
  yield* start(bin, standby)
  return standby
})

/** A server for the scope, with a standby if `replicated`. */
export const makeCluster = (replicated: boolean): Effect.Effect<Cluster, never, Scope.Scope> =>
  Effect.gen(function*() {
    const context = yield* Effect.orDie(Layer.build(Layer.fresh(EmbeddedPostgres.layer)))
    const url = Redacted.value((yield* EmbeddedPostgres.pipe(Effect.provide(context))).url)
    const [row] = yield* ask(url, (sql) => sql<{ readonly data_directory: string }>`select current_setting('data_directory') as data_directory`)
    const data = row!.data_directory
    const [pid] = readFileSync(join(data, "postmaster.pid"), "utf8").split("\n")
    const bin = dirname(readlinkSync(`/proc/${pid}/exe`))
    let server: Server = { data, port: Number(new URL(url).port) }
    const standby = replicated ? yield* makeStandby(bin, server, yield* freePort, url) : undefined
    // What was started here is no child of `EmbeddedPostgres`, which ends its own only.
    const all = [data, ...(standby === undefined ? [] : [standby.data])]
    yield* Effect.addFinalizer(() => Effect.forEach(all, (one) => Effect.ignoreCause(control(bin, one, "stop", "-m", "immediate"))))
    if (replicated) {
      const inStep = ask(at(url, server.port), (sql) => sql<{ readonly n: number }>`select count(*)::int as n from pg_stat_replication where sync_state = 'sync'`)
      yield* Effect.repeat(inStep, { until: ([found]) => found?.n === 1 })
    }
    const proxy = yield* proxyTo(server.port)
    return {
      proxy,
      isReplicated: replicated,
      createDatabase: (name) =>
        Effect.as(ask(at(url, server.port), (sql) => sql`create database ${sql(name)}`), at(url, proxy.port, name)),
      restart: (mode) => Effect.andThen(control(bin, server.data, "stop", "-m", mode), Effect.suspend(() => start(bin, server))),
      failOver: Effect.suspend(() => {
        if (standby === undefined) return Effect.die(new Error("Bug: a failover without a standby"))
        return control(bin, server.data, "stop", "-m", "immediate").pipe(
          Effect.andThen(control(bin, standby.data, "promote")),
          Effect.andThen(proxy.moveTo(standby.port)),
          Effect.andThen(Effect.sync(() => {
            server = standby
          }))
        )
      })
    }
  })
