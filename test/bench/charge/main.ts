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
import { writeFileSync } from "node:fs"
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
  readonly fsyncs: number
  readonly walBytes: number
}

const startServer = () =>
  new Promise<{ readonly url: string; readonly stop: () => void }>((resolve, reject) => {
    const child = spawn(process.execPath, [here("server.ts"), String(latencyMs)], { stdio: ["ignore", "pipe", "inherit"] })
    child.stdout.once("data", (line) => resolve({ url: String(line).trim(), stop: () => void child.kill() }))
    child.once("exit", reject)
  })

const counters = async (client: pg.Client) => {
  await client.query("select pg_stat_force_next_flush()")
  const { rows } = await client.query<{ readonly transactions: string; readonly fsyncs: string; readonly wal: string }>(
    `select (select sum(xact_commit) from pg_stat_database) as transactions,
      (select coalesce(sum(fsyncs), 0) from pg_stat_io where object = 'wal') as fsyncs, pg_current_wal_lsn() - '0/0' as wal`
  )
  return { transactions: Number(rows[0]!.transactions), fsyncs: Number(rows[0]!.fsyncs), wal: Number(rows[0]!.wal) }
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
    fsyncs: (after.fsyncs - before.fsyncs) / count,
    walBytes: (after.wal - before.wal) / count
  }
}

const compare = async (databaseUrl: string) => {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
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
      peakRssMb: of("peakRssMb"),
      transactions: of("transactions"),
      fsyncs: of("fsyncs"),
      walBytes: of("walBytes")
    }
  })
}

const results = await Effect.runPromise(
  Effect.flatMap(EmbeddedPostgres, ({ url }) => Effect.promise(() => compare(Redacted.value(url)))).pipe(Effect.provide(EmbeddedPostgres.layerDurable))
)
process.stdout.write(`${cpus().length} cores (${cpus()[0]?.model.trim()}), Node ${process.version}; ${rounds} rounds of ${count}, ${inFlight} in flight, answers after ${latencyMs} ms\n`)
for (const { cpuMicros, fsyncs, peakRssMb, perSecond, program, ratio, transactions, walBytes } of results) {
  process.stdout.write(
    `${program.padEnd(16)} ${shown(perSecond, 0).padStart(22)} /s  ${ratio === undefined ? "" : `${shown(ratio, 2)} x by hand, batched`}  ` +
      `${cpuMicros.median.toFixed(0)} us, ${peakRssMb.median.toFixed(0)} MB, ${transactions.median.toFixed(3)} transactions, ${fsyncs.median.toFixed(3)} fsyncs, ${walBytes.median.toFixed(0)} B of WAL a charge\n`
  )
}
if (values.json !== undefined) {
  writeFileSync(values.json, `${JSON.stringify({ rounds, count, inFlight, latencyMs, cpus: cpus().length, cpu: cpus()[0]?.model, node: process.version, results }, null, 2)}\n`)
}
