/** What telemetry costs, as processor time of one charge: taken out of the code, off, with metrics, with traces of all charges. */
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
      const modes = ["taken out", "off", "metrics", "traces", "both"] as const
      const found = await inTurns(modes, bench.rounds, async (mode) => {
        const [name, before] = mode === "taken out" ? ["off", ["--import", beside(import.meta.url, "without.ts")]] : [mode, []]
        const { said } = await runNode([...before, beside(import.meta.url, "side.ts"), name, String(count), String(inFlight), url])
        bench.say(`${mode} ${said.trim()} µs`)
        return Number(said)
      })
      return {
        setting: `${count} charges a round over router-dealer sockets with stores in memory, ${inFlight} under way; processor time of the one process`,
        figures: modes.map((mode) => ({ program: mode, what: "µs of processor a charge", values: found[mode] })),
        goals: [
          // Within what two runs of the same differ by.
          { what: "off ÷ taken out of the code", wanted: { atMost: 1.02 }, values: ratios(found.off, found["taken out"]) },
          // Who watches should not have to count what watching costs.
          { what: "metrics ÷ off", wanted: { atMost: 1.05 }, values: ratios(found.metrics, found.off) }
        ]
      }
    } finally {
      collector.close()
    }
  }
}
