/** What telemetry costs, as processor time of one charge: without it, with metrics, with traces of all charges. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { beside, runNode } from "../support/children.ts"
import { inTurns, ratios, type Suite } from "../support/Suite.ts"

export const telemetry: Suite = {
  name: "telemetry",
  title: "What telemetry costs",
  run: async (bench) => {
    const [count, inFlight] = [bench.count(20_000, 6000), 256]
    /** Takes what it is sent; its time is not the sides'. */
    const collector = createServer((request, response) => {
      request.resume()
      request.on("end", () => response.end())
    })
    await new Promise<void>((listening) => collector.listen(0, "127.0.0.1", listening))
    const url = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`
    try {
      const modes = ["off", "metrics", "traces", "both"] as const
      const found = await inTurns(modes, bench.rounds, async (mode) => {
        const { said } = await runNode([beside(import.meta.url, "side.ts"), mode, String(count), String(inFlight), url])
        bench.say(`${mode} ${said.trim()} µs`)
        return Number(said)
      })
      return {
        setting: `${count} charges a round over router-dealer sockets with stores in memory, ${inFlight} under way; processor time of the one process`,
        figures: modes.map((mode) => ({ program: mode, what: "µs of processor a charge", values: found[mode] })),
        // Who watches should not have to count what watching costs.
        goals: [{ what: "metrics ÷ off", wanted: { atMost: 1.05 }, values: ratios(found.metrics, found.off) }]
      }
    } finally {
      collector.close()
    }
  }
}
