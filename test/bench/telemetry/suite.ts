/** What telemetry costs, as processor time of one charge: taken out of the code, off, with metrics, with traces of all charges. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { beside, runNode } from "../support/children.ts"
import { inTurns, ratios, type Suite } from "../support/Suite.ts"

export const telemetry: Suite = {
  name: "telemetry",
  title: "What telemetry costs",
  run: async (bench) => {
    const [count, inFlight] = [bench.count(16_000, 8000), 256]
    /** Takes what it is sent; its time is not the sides'. */
    const collector = createServer((request, response) => {
      request.resume()
      request.on("end", () => response.end())
    })
    await new Promise<void>((listening) => collector.listen(0, "127.0.0.1", listening))
    const url = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`
    try {
      const modes = ["taken out", "off", "metrics", "traces", "both"] as const
      const isTraced = (mode: (typeof modes)[number]) => mode === "traces" || mode === "both"
      const microsOf = async (mode: (typeof modes)[number]) => {
        const [name, before] = mode === "taken out" ? ["off", ["--import", beside(import.meta.url, "without.ts")]] : [mode, []]
        const { said } = await runNode([...before, beside(import.meta.url, "side.ts"), name, String(isTraced(mode) ? Math.ceil(count / 3) : count), String(inFlight), url])
        bench.say(`${mode} ${said.trim()} µs`)
        return Number(said)
      }
      // What is compared to a hundredth is measured in three processes a round; of them the least, since other work on the machine only ever adds.
      const measured = await inTurns(modes, 3 * bench.rounds, async (mode, turn) => isTraced(mode) && turn % 3 > 0 ? Number.POSITIVE_INFINITY : microsOf(mode))
      const leastOf = (mode: (typeof modes)[number]) => Array.from({ length: bench.rounds }, (_, round) => Math.min(...measured[mode].slice(3 * round, 3 * round + 3)))
      const [takenOut, off, metrics] = [leastOf("taken out"), leastOf("off"), leastOf("metrics")]
      return {
        setting: `${count} charges a round over router-dealer sockets with stores in memory, ${inFlight} under way; processor time of the one process, the least of three processes in a round, each the quickest of eight parts after half as many again for the compiler; a third of them with traces`,
        figures: modes.map((mode) => ({ program: mode, what: "µs of processor a charge", values: leastOf(mode) })),
        goals: [
          // Within what two runs of the same differ by.
          { what: "off ÷ taken out of the code", wanted: { atMost: 1.02 }, values: ratios(off, takenOut) },
          // Who watches should not have to count what watching costs.
          { what: "metrics ÷ off", wanted: { atMost: 1.05 }, values: ratios(metrics, off) }
        ]
      }
    } finally {
      collector.close()
    }
  }
}
