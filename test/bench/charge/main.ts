/**
 * How many charges a second each program makes, on one PostgreSQL with fsync and against one local server:
 * `node charge/main.ts [--rounds 5] [--count 8000] [--in-flight 256] [--latency 0] [--program NAME]… [--json FILE]`.
 *
 * The programs take turns in every round, so that a busy moment of the machine meets all of them: read the ratios, each of
 * one round. A charge is one row before the call and its answer after it, both durable. Statements and fsyncs are the
 * server's own counts, also those of its background.
 */
import { EmbeddedPostgres } from "@purser/postgres/EmbeddedPostgres"
import { Effect, Redacted } from "effect"
import { fork, spawn } from "node:child_process"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { cpus } from "node:os"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import pg from "pg"
import { shown, spread } from "../spread.ts"
import type { Setting } from "./jobs.ts"
import { programs } from "./programs.ts"

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    count: { type: "string", default: "8000" },
    "in-flight": { type: "string", default: "256" },
    latency: { type: "string", default: "0" },
    program: { type: "string", multiple: true, default: Object.keys(programs) },
    json: { type: "string" }
  }
})
const [rounds, count, inFlight, latencyMs] = [values.rounds, values.count, values["in-flight"], values.latency].map(Number) as [number, number, number, number]
const here = (file: string) => fileURLToPath(new URL(file, import.meta.url))

interface Measured {
  readonly perSecond: number
  /** Of the program's own process. */
  readonly cpuMicros: number
  readonly peakRssMb: number
  readonly transactions: number
  readonly statements: number
  readonly fsyncs: number
  readonly walBytes: number
  /** Of the database's processes; not a number where there is no /proc. */
  readonly databaseCpuMicros: number
}

interface Stat {
  readonly parent: number
  readonly ticks: number
  readonly ticksOfEnded: number
}

const statOf = (pid: string): Stat | undefined => {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ")
    return { parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]), ticksOfEnded: Number(fields[13]) + Number(fields[14]) }
  } catch {
    return undefined
  }
}

/** Processor time in ms of a server: of its processes, and of those that have ended. */
const databaseCpuMs = (backendPid: number): number => {
  const postmaster = statOf(String(backendPid))?.parent
  if (postmaster === undefined) return Number.NaN
  const own = statOf(String(postmaster))!
  const children = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map(statOf).filter((stat) => stat?.parent === postmaster)
  return (own.ticks + own.ticksOfEnded + children.reduce((sum, stat) => sum + stat!.ticks, 0)) * 10
}

const startServer = () =>
  new Promise<{ readonly url: string; readonly stop: () => void }>((resolve, reject) => {
    const child = spawn(process.execPath, [here("server.ts"), String(latencyMs)], { stdio: ["ignore", "pipe", "inherit"] })
    child.stdout.once("data", (line) => resolve({ url: String(line).trim(), stop: () => void child.kill() }))
    child.once("exit", reject)
  })

const counters = async (client: pg.Client) => {
  await client.query("select pg_stat_force_next_flush()")
  const { rows } = await client.query<{ readonly transactions: string; readonly statements: string; readonly fsyncs: string; readonly wal: string; readonly pid: number }>(
    `select pg_backend_pid() as pid, (select sum(xact_commit) from pg_stat_database) as transactions,
      (select sum(calls) from pg_stat_statements) as statements, (select coalesce(sum(fsyncs), 0) from pg_stat_io where object = 'wal') as fsyncs, pg_current_wal_lsn() - '0/0' as wal`
  )
  return { transactions: Number(rows[0]!.transactions), statements: Number(rows[0]!.statements), fsyncs: Number(rows[0]!.fsyncs), wal: Number(rows[0]!.wal), cpuMs: databaseCpuMs(rows[0]!.pid) }
}

const measure = async (name: string, setting: Setting, client: pg.Client): Promise<Measured> => {
  const child = fork(here("side.ts"), [name, String(count), JSON.stringify(setting)], { execArgv: ["--disable-warning=ExperimentalWarning"] })
  const heard = <A>() =>
    new Promise<A>((resolve, reject) => {
      child.once("message", (message) => resolve(message as A))
      child.once("exit", (code) => reject(new Error(`${name} ended with ${code}`)))
    })
  await heard()
  const before = await counters(client)
  child.send("go")
  const { cpuMicros, peakRssMb, tookMs } = await heard<{ tookMs: number; cpuMicros: number; peakRssMb: number }>()
  const after = await counters(client)
  const ended = new Promise((resolve) => child.once("close", resolve))
  child.send("end")
  await ended
  return {
    perSecond: count * 1000 / tookMs,
    cpuMicros,
    peakRssMb,
    transactions: (after.transactions - before.transactions) / count,
    statements: (after.statements - before.statements) / count,
    fsyncs: (after.fsyncs - before.fsyncs) / count,
    walBytes: (after.wal - before.wal) / count,
    databaseCpuMicros: (after.cpuMs - before.cpuMs) * 1000 / count
  }
}

const compare = async (databaseUrl: string) => {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  await client.query("create extension pg_stat_statements")
  const server = await startServer()
  const measured = new Map<string, Array<Measured>>(values.program.map((name) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (const name of values.program) {
      const setting = { databaseUrl, postUrl: server.url, inFlight, run: `${process.pid}r${round}${name}` }
      measured.get(name)!.push(await measure(name, setting, client))
    }
  }
  server.stop()
  await client.end()
  const reference = measured.get("by-hand-batched")
  return [...measured].map(([program, runs]) => {
    const of = (field: keyof Measured) => spread(runs.map((run) => run[field]))
    return {
      program,
      perSecond: of("perSecond"),
      ratio: reference === undefined ? undefined : spread(runs.map((run, round) => run.perSecond / reference[round]!.perSecond)),
      cpuMicros: of("cpuMicros"),
      databaseCpuMicros: of("databaseCpuMicros"),
      peakRssMb: of("peakRssMb"),
      transactions: of("transactions"),
      statements: of("statements"),
      fsyncs: of("fsyncs"),
      walBytes: of("walBytes")
    }
  })
}

const results = await Effect.runPromise(
  Effect.flatMap(EmbeddedPostgres, ({ url }) => Effect.promise(() => compare(Redacted.value(url)))).pipe(Effect.provide(EmbeddedPostgres.layerDurable))
)
process.stdout.write(`${cpus().length} cores (${cpus()[0]?.model.trim()}), Node ${process.version}; ${rounds} rounds of ${count}, ${inFlight} in flight, answers after ${latencyMs} ms\n`)
for (const { cpuMicros, databaseCpuMicros, fsyncs, peakRssMb, perSecond, program, ratio, statements, transactions, walBytes } of results) {
  process.stdout.write(
    `${program.padEnd(16)} ${shown(perSecond, 0).padStart(22)} /s  ${ratio === undefined ? "" : `${shown(ratio, 2)} x by hand, batched`}  ` +
      `${cpuMicros.median.toFixed(0)} us + ${databaseCpuMicros.median.toFixed(0)} us in the database, ${peakRssMb.median.toFixed(0)} MB, ${transactions.median.toFixed(3)} transactions, ${statements.median.toFixed(3)} statements, ${fsyncs.median.toFixed(3)} fsyncs, ${walBytes.median.toFixed(0)} B of WAL a charge\n`
  )
}
if (values.json !== undefined) {
  writeFileSync(values.json, `${JSON.stringify({ rounds, count, inFlight, latencyMs, cpus: cpus().length, cpu: cpus()[0]?.model, node: process.version, results }, null, 2)}\n`)
}
