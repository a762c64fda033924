/**
 * What the spend-cap proxy adds to a reverse proxy that does nothing, in front of a Stripe that answers at once: latency at a
 * steady rate, throughput with 64 calls under way, and processor time, which other programs on the machine do not change.
 */
import { mkdtempSync } from "node:fs"
import { join } from "node:path"
import { beside, runNode, type Server, startServer } from "../support/children.ts"
import { cpuMsOf, peakRssMbOf } from "../support/processes.ts"
import { type Bench, type Cost, type Figure, type Goal, inTurns, type Suite } from "../support/Suite.ts"
import { quantile } from "../support/spread.ts"
import { full, steady, type Target, targetAt, warm } from "./load.ts"

const perSecond = 200
const under = 64
const address = /on (http:\/\/127\.0\.0\.1:\d+)/
const urlOf = ({ said }: Server) => address.exec(said)![1]!

interface Measured {
  readonly p50: number
  readonly p99: number
  readonly perSecond: number
  readonly cost: Cost
}

const measure = async (bench: Bench, target: Target, pid: number, seconds: number, isOnServer: boolean): Promise<Measured> => {
  const times = await steady(target, seconds, perSecond)
  const counted = await bench.server.counting()
  const before = cpuMsOf(pid)
  const { calls, tookMs } = await full(target, seconds, under)
  const cpuMicros = (cpuMsOf(pid) - before) * 1000 / calls
  // Its connections stay, and tell their fsyncs late.
  const { fsyncs: _, ...ofServer } = await counted(calls)
  return { p50: quantile(times, 0.5), p99: quantile(times, 0.99), perSecond: calls * 1000 / tookMs, cost: { ...isOnServer ? ofServer : {}, cpuMicros, peakRssMb: peakRssMbOf(pid) } }
}

const storeOf = async (bench: Bench, name: "postgres" | "embedded"): Promise<Record<string, string>> =>
  name === "postgres" ? { PURSER_PROXY_DATABASE_URL: await bench.server.newDatabase() } : { PURSER_PROXY_DATA_DIR: mkdtempSync(join(bench.folder, "proxy-")) }

const besideNothing = async (bench: Bench, name: "postgres" | "embedded", command: string, upstream: string, bare: Server) => {
  const env = { ...await storeOf(bench, name), PURSER_PROXY_STRIPE_KEY: "rk_test_bench", PURSER_PROXY_UPSTREAM: upstream }
  const { said } = await runNode([command, "vault", "create", "--period", "2026-07", "--expected-total", "999999999.00", "--currency", "usd", "--json"], env, bench.folder)
  const { key } = JSON.parse(said) as { readonly key: string }
  const proxy = await startServer([command, "proxy", "--port", "0"], address, env, bench.folder)
  const targets = { bare: targetAt(urlOf(bare), key), proxy: targetAt(urlOf(proxy), key) }
  const pids = { bare: bare.pid, proxy: proxy.pid }
  for (const target of Object.values(targets)) await warm(target)
  const found = await inTurns(["bare", "proxy"], bench.rounds, async (side) => {
    const one = await measure(bench, targets[side], pids[side], bench.count(4, 2), side === "proxy" && name === "postgres")
    bench.say(`${name}, ${side} ${one.perSecond.toFixed(0)}/s, p50 ${one.p50.toFixed(2)} ms`)
    return one
  })
  await Promise.all(Object.values(targets).map(({ pool }) => pool.destroy()))
  await proxy.stop()
  const of = (side: "bare" | "proxy", field: "p50" | "p99" | "perSecond") => found[side].map((one) => one[field])
  const figures = (["bare", "proxy"] as const).flatMap((side): ReadonlyArray<Figure> => {
    const program = `${side === "bare" ? "bare proxy" : "spend-cap proxy"}, ${name}`
    return [
      { program, what: "calls/s", values: of(side, "perSecond"), cost: found[side].map(({ cost }) => cost) },
      { program, what: "p50 ms", values: of(side, "p50") },
      { program, what: "p99 ms", values: of(side, "p99") }
    ]
  })
  const goals: ReadonlyArray<Goal> = [
    { what: `${name}: calls/s`, wanted: { atLeast: 1500 }, values: of("proxy", "perSecond") },
    { what: `${name}: p50 added at ${perSecond} calls/s, ms`, wanted: { atMost: 1.5 }, values: of("proxy", "p50").map((ms, round) => ms - of("bare", "p50")[round]!) }
  ]
  return { figures, goals }
}

export const proxy: Suite = {
  name: "proxy",
  title: "The spend-cap proxy",
  run: async (bench) => {
    const command = await bench.command()
    const upstream = await startServer([beside(import.meta.url, "upstream.ts")], address)
    const bare = await startServer([beside(import.meta.url, "bare.ts"), urlOf(upstream)], address)
    const found = [await besideNothing(bench, "postgres", command, urlOf(upstream), bare)]
    if (!bench.quick) found.push(await besideNothing(bench, "embedded", command, urlOf(upstream), bare))
    await Promise.all([bare.stop(), upstream.stop()])
    return {
      setting: `${bench.count(4, 2)} s a round at ${perSecond} calls/s and as long with ${under} under way; the store with fsync; what a call costs is that of ${under} under way`,
      figures: found.flatMap(({ figures }) => figures),
      goals: found.flatMap(({ goals }) => goals)
    }
  }
}
