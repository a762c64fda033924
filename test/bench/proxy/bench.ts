/**
 * `node proxy/bench.ts [SECONDS] [STORES] [RATE]`: what the spend-cap proxy adds to a reverse proxy that does nothing, in one
 * run: latency at a steady rate, in turns, and throughput with 64 calls under way. `STORES` by comma: `postgres` (a test
 * server without fsync, or PURSER_TEST_DATABASE_URL), `pglite`, `pglite-nosync`.
 */
import { Pool } from "@effect/platform-node/Undici"
import * as TestDatabase from "@purser/postgres/TestDatabase"
import { Effect, Redacted } from "effect"
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { cpus, tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const seconds = Number(process.argv[2] ?? 5)
const stores = (process.argv[3] ?? "postgres,pglite,pglite-nosync").split(",")
const rate = Number(process.argv[4] ?? 200)
const rounds = 4
const under = 64
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const cli = here("../../../apps/cli/src/main.ts")
const children = new Set<ChildProcess>()
// Also when the bench itself fails.
process.on("exit", () => children.forEach((child) => void child.kill("SIGKILL")))
const base = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("PURSER_")))

const start = (args: ReadonlyArray<string>, env: Record<string, string> = {}) =>
  new Promise<{ readonly url: string; readonly pid: number }>((resolve, reject) => {
    const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", ...args], { env: { ...base, ...env }, stdio: ["ignore", "pipe", "inherit"] })
    children.add(child)
    let said = ""
    child.stdout.on("data", (data) => {
      said += String(data)
      const url = /on (http:\/\/127\.0\.0\.1:\d+)/.exec(said)?.[1]
      if (url !== undefined) resolve({ url, pid: child.pid! })
    })
    child.on("exit", (code) => reject(new Error(`${args[0]} ended with ${code}`)))
  })

let key = 0
const once = (pool: Pool, vaultKey: string) =>
  new Promise<number>((resolve, reject) => {
    const startedMs = performance.now()
    let status = 0
    const n = key += 1
    pool.dispatch({
      method: "POST",
      path: "/v1/charges",
      headers: { authorization: `Bearer ${vaultKey}`, "idempotency-key": `bench-${process.pid}-${n}`, "content-type": "application/x-www-form-urlencoded" },
      body: `amount=100&currency=usd&customer=cus_${n}&metadata[customer_id]=c${n}`
    }, {
      onRequestStart: () => {},
      onResponseStart: (_, code) => {
        status = code
      },
      onResponseData: () => {},
      onResponseEnd: () => status === 200 ? resolve(performance.now() - startedMs) : reject(new Error(`status ${status}`)),
      onResponseError: (_, error) => reject(error)
    })
  })

const quantile = (sorted: ReadonlyArray<number>, q: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))]!

/** Latencies at a steady rate: a call starts when it is due, whether or not earlier ones are back. */
const steady = async (pool: Pool, vaultKey: string) => {
  const calls: Array<Promise<number>> = []
  const beganMs = performance.now()
  while (performance.now() - beganMs < seconds * 1000) {
    const due = Math.floor((performance.now() - beganMs) * rate / 1000)
    while (calls.length <= due) calls.push(once(pool, vaultKey))
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  return Promise.all(calls)
}

/** Calls a second with a fixed number under way. */
const full = async (pool: Pool, vaultKey: string) => {
  const beganMs = performance.now()
  let calls = 0
  await Promise.all(Array.from({ length: under }, async () => {
    while (performance.now() - beganMs < seconds * 1000) {
      await once(pool, vaultKey)
      calls += 1
    }
  }))
  return calls / ((performance.now() - beganMs) / 1000)
}

/** CPU time of a process in ms, on Linux: the one figure that other programs on the machine do not change. */
const cpuMs = (pid: number) => {
  const file = `/proc/${pid}/stat`
  if (!existsSync(file)) return Number.NaN
  const fields = readFileSync(file, "utf8").split(") ")[1]!.split(" ")
  return (Number(fields[11]) + Number(fields[12])) * 10
}

const median = (values: ReadonlyArray<number>) => quantile(values.toSorted((a, b) => a - b), 0.5)

const measure = async (name: string, upstream: string, bare: { readonly url: string; readonly pid: number }, env: Record<string, string>) => {
  const proxyEnv = { ...env, PURSER_PROXY_STRIPE_KEY: "rk_test_bench", PURSER_PROXY_UPSTREAM: upstream }
  const made = execFileSync(process.execPath, [
    "--disable-warning=ExperimentalWarning", cli, "vault", "create", "--period", "2026-07", "--expected-total", "999999999.00", "--currency", "usd", "--json"
  ], { env: { ...base, ...proxyEnv }, stdio: ["ignore", "pipe", "ignore"] })
  const vaultKey = (JSON.parse(String(made)) as { key: string }).key
  const proxy = await start([cli, "proxy", "--port", "0"], proxyEnv)
  const targets = { bare: new Pool(bare.url, { connections: 128 }), proxy: new Pool(proxy.url, { connections: 128 }) }
  const pids = { bare: bare.pid, proxy: proxy.pid }
  const cpu = { bare: 0, proxy: 0 }
  const calls = { bare: 0, proxy: 0 }
  // Warm on both sides.
  for (const pool of Object.values(targets)) for (let n = 0; n < 10; n++) await Promise.all(Array.from({ length: 100 }, () => once(pool, vaultKey)))
  const times = { bare: [] as Array<number>, proxy: [] as Array<number> }
  const speeds = { bare: [] as Array<number>, proxy: [] as Array<number> }
  for (let round = 0; round < rounds; round++) {
    for (const target of ["bare", "proxy"] as const) times[target].push(...await steady(targets[target], vaultKey))
  }
  for (let round = 0; round < rounds; round++) {
    for (const target of ["bare", "proxy"] as const) {
      const [beforeMs, before] = [cpuMs(pids[target]), key]
      speeds[target].push(await full(targets[target], vaultKey))
      cpu[target] += cpuMs(pids[target]) - beforeMs
      calls[target] += key - before
    }
  }
  await Promise.all(Object.values(targets).map((pool) => pool.destroy()))
  const at = (target: "bare" | "proxy", q: number) => quantile(times[target].toSorted((a, b) => a - b), q)
  const show = (value: number) => value.toFixed(2)
  process.stdout.write(
    `${name.padEnd(14)} p50 ${show(at("bare", 0.5))} → ${show(at("proxy", 0.5))} ms (+${show(at("proxy", 0.5) - at("bare", 0.5))})   ` +
      `p99 ${show(at("bare", 0.99))} → ${show(at("proxy", 0.99))} ms (+${show(at("proxy", 0.99) - at("bare", 0.99))})   ` +
      `${Math.round(median(speeds.bare))}/s → ${Math.round(median(speeds.proxy))}/s (best ${Math.round(Math.max(...speeds.proxy))}/s)   ` +
      `CPU a call ${show(cpu.bare / calls.bare)} → ${show(cpu.proxy / calls.proxy)} ms\n`
  )
}

const withStore = async (name: string, use: (env: Record<string, string>) => Promise<void>) => {
  if (name === "postgres") {
    return Effect.runPromise(Effect.scoped(Effect.flatMap(TestDatabase.postgresUrl, (url) =>
      Effect.promise(() => use({ PURSER_PROXY_DATABASE_URL: Redacted.value(url) })))))
  }
  const folder = mkdtempSync(join(tmpdir(), "purser-bench-"))
  await use({ PURSER_PROXY_DATA_DIR: folder, PURSER_PROXY_PGLITE_FSYNC: String(name === "pglite") })
  rmSync(folder, { recursive: true, force: true })
}

process.stdout.write(`${cpus().length} cores (${cpus()[0]?.model.trim()}), Node ${process.version}; ${rounds} rounds of ${seconds} s; latency at ${rate} calls/s, throughput with ${under} under way\n`)
const { url: upstream } = await start([here("upstream.ts")])
const bare = await start([here("bare.ts"), upstream])
for (const name of stores) {
  await withStore(name, async (env) => {
    const before = new Set(children)
    await measure(name, upstream, bare, env)
    for (const child of children) {
      if (before.has(child)) continue
      const ended = new Promise((resolve) => child.once("close", resolve))
      child.removeAllListeners("exit")
      child.kill("SIGTERM")
      await ended
    }
  })
}
for (const child of children) {
  child.removeAllListeners("exit")
  child.kill("SIGKILL")
}
