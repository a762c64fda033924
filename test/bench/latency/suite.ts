/** How long one charge takes while there is little to do. */
import { withChargeServer } from "../charge/compare.ts"
import { beside, openSide } from "../support/children.ts"
import { inTurns, ratios, type Suite } from "../support/Suite.ts"
import { quantile } from "../support/spread.ts"
import type { Paced } from "./side.ts"

const perSecond = 50

export const latency: Suite = {
  name: "latency",
  title: "Latency when idle",
  run: async (bench) => {
    const count = bench.count(750, 200)
    const databaseUrl = await bench.server.newDatabase()
    const found = await withChargeServer(0, (postUrl) =>
      inTurns(["by-hand-single", "graphile-worker", "dbos", "purser"], bench.rounds, async (name, round) => {
        const setting = { databaseUrl, postUrl, inFlight: 32, run: `${process.pid}r${round}${name}` }
        const side = openSide(beside(import.meta.url, "side.ts"), [name, String(count), String(perSecond), JSON.stringify(setting)])
        await side.heard()
        const counted = await bench.server.counting()
        side.send("go")
        const { cpuMicros, peakRssMb, timesMs } = await side.heard<Paced>()
        // Connections that are seldom busy tell their fsyncs late, and before these charges there were others, of which many shared one.
        const { fsyncs: _, ...cost } = await counted(count)
        await side.end()
        const [p50, p99] = [quantile(timesMs, 0.5), quantile(timesMs, 0.99)]
        bench.say(`${name} p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`)
        return { p50, p99, cost: { ...cost, cpuMicros, peakRssMb } }
      }))
    const of = (name: keyof typeof found, which: "p50" | "p99") => found[name].map((one) => one[which])
    return {
      setting: `${count} charges a round, ${perSecond} a second, answers at once; a job of graphile-worker is done when its call is answered, the others' when that is recorded`,
      figures: (Object.keys(found) as Array<keyof typeof found>).flatMap((program) => [
        { program, what: "p50 ms", values: of(program, "p50"), cost: found[program].map(({ cost }) => cost) },
        { program, what: "p99 ms", values: of(program, "p99") }
      ]),
      goals: [
        { what: "p50: purser ÷ by hand", wanted: { atMost: 1.3 }, values: ratios(of("purser", "p50"), of("by-hand-single", "p50")) },
        {
          what: "p99: purser ÷ by hand",
          wanted: { atMost: 2 },
          values: ratios(of("purser", "p99"), of("by-hand-single", "p99")),
          // The values that are not below it.
          detail: `as slow as p99 or slower are ${count - Math.floor(count * 0.99)} of a round's ${count} charges`
        }
      ]
    }
  }
}
