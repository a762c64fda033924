/** The PostgreSQL of the comparisons, with fsync as a server for data has it, and what it counts itself. */
import { EmbeddedPostgres } from "@purser/postgres/EmbeddedPostgres"
import { Effect, Redacted } from "effect"
import { readdirSync } from "node:fs"
import pg from "pg"
import { statOf } from "./processes.ts"
import { countColumns, notCounted, tellCounts } from "./statements.ts"
import type { Cost } from "./Suite.ts"

/** Processor time in ms of a server: of its processes, and of those that have ended. */
const databaseCpuMs = (backendPid: number): number => {
  const postmaster = statOf(backendPid)?.parent
  if (postmaster === undefined) return Number.NaN
  const own = statOf(postmaster)!
  const children = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map((name) => statOf(Number(name))).filter((stat) => stat?.parent === postmaster)
  return own.cpuMs + own.cpuMsOfEnded + children.reduce((sum, stat) => sum + stat!.cpuMs, 0)
}

interface Counted {
  readonly transactions: number
  readonly statements: number
  readonly fsyncs: number
  readonly wal: number
  readonly cpuMs: number
}

/** A server that counts. */
export interface DurableServer {
  readonly version: string
  /** A new, empty database. */
  readonly newDatabase: () => Promise<string>
  /**
   * What the server has done since the call, its background's work among it, for one of `count` jobs. Transactions are those that wrote. A connection tells its
   * fsyncs a second late, or when it ends: they are right for what has begun and ended in between, and for connections that are asked by `tellCounts` before and after.
   */
  readonly counting: () => Promise<(count: number) => Promise<Cost>>
}

const serverAt = async (url: string): Promise<{ readonly server: DurableServer; readonly close: () => Promise<void> }> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query("create extension if not exists pg_stat_statements")
  const { rows: [{ version }] } = await client.query("select current_setting('server_version') as version")
  const counters = async (): Promise<Counted> => {
    await client.query(tellCounts)
    const { rows } = await client.query<Record<string, string>>(
      `select ${notCounted} pg_backend_pid() as pid, ${countColumns}, (select coalesce(sum(calls), 0) from pg_stat_statements where query not like '%${notCounted}%') as statements`
    )
    const { fsyncs, pid, statements, transactions, wal } = rows[0]!
    return { transactions: Number(transactions), statements: Number(statements), fsyncs: Number(fsyncs), wal: Number(wal), cpuMs: databaseCpuMs(Number(pid)) }
  }
  let databases = 0
  return {
    server: {
      version,
      newDatabase: async () => {
        const name = `bench_${++databases}`
        await client.query(`create database ${name}`)
        const made = new URL(url)
        made.pathname = `/${name}`
        return made.href
      },
      counting: async () => {
        const before = await counters()
        return async (count) => {
          const after = await counters()
          return {
            transactions: (after.transactions - before.transactions) / count,
            statements: (after.statements - before.statements) / count,
            fsyncs: (after.fsyncs - before.fsyncs) / count,
            walBytes: (after.wal - before.wal) / count,
            databaseCpuMicros: (after.cpuMs - before.cpuMs) * 1000 / count
          }
        }
      }
    },
    close: () => client.end()
  }
}

/** Starts a server, uses it, and stops it. */
export const withServer = <A>(use: (server: DurableServer) => Promise<A>): Promise<A> =>
  Effect.runPromise(
    Effect.flatMap(EmbeddedPostgres, ({ url }) =>
      Effect.promise(async () => {
        const { close, server } = await serverAt(Redacted.value(url))
        return use(server).finally(close)
      })).pipe(Effect.provide(EmbeddedPostgres.layerDurable))
  )

/** One query on a connection of its own. */
export const ask = async <R extends pg.QueryResultRow>(url: string, text: string): Promise<ReadonlyArray<R>> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return client.query<R>(text).then(({ rows }) => rows).finally(() => client.end())
}
