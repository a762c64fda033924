/** The two-step gateway beside the two calls alone, at the simulator. */
import { beside, openSide, startServer } from "../support/children.ts"
import { cpuMsOf } from "../support/processes.ts"
import type { Worked } from "../support/side.ts"
import { inTurns, ratios, type Suite } from "../support/Suite.ts"
import { spread } from "../support/spread.ts"

export const gateway: Suite = {
  name: "gateway",
  title: "The two-step Stripe gateway",
  run: async (bench) => {
    const [count, inFlight] = [bench.count(4000, 2000), 64]
    // A simulator for each measurement: its memory grows with what it has seen.
    const found = await inTurns(["posts", "gateway"], bench.rounds, async (name, round) => {
      const sim = await startServer([beside(import.meta.url, "sim.ts")], /\n/)
      const url = /on (\S+)/.exec(sim.said)![1]!
      const side = openSide(beside(import.meta.url, "side.ts"), [name, String(count), String(inFlight), `r${round}${name}`, url])
      await side.heard()
      const before = cpuMsOf(sim.pid)
      side.send("go")
      const { cpuMicros, peakRssMb, tookMs } = await side.heard<Worked>()
      const simCpuMicros = (cpuMsOf(sim.pid) - before) * 1000 / count
      await side.end()
      await sim.stop()
      bench.say(`${name} ${(count * 1000 / tookMs).toFixed(0)}/s`)
      return { perSecond: count * 1000 / tookMs, cost: { cpuMicros, peakRssMb }, simCpuMicros }
    })
    const of = (name: keyof typeof found) => found[name].map(({ perSecond }) => perSecond)
    return {
      setting: `${count} charges a round, each one create and one confirm, ${inFlight} under way, at the simulator in a process of its own (${spread(found.posts.map((one) => one.simCpuMicros)).median.toFixed(0)} µs of its processor a charge)`,
      figures: (["posts", "gateway"] as const).map((name) => ({
        program: name === "posts" ? "two bare POSTs" : "gateway, create and confirm", what: "charges/s", values: of(name), cost: found[name].map(({ cost }) => cost)
      })),
      goals: [{ what: "gateway ÷ two POSTs", wanted: { atLeast: 0.8 }, values: ratios(of("gateway"), of("posts")) }]
    }
  }
}
