/**
 * `node test/simulation/scripts/explore.ts [--workers 3] [--crashes 1] [--losses 1] [--leases 1] [--restarts 1]`: all states within
 * the bounds, with their numbers; ends with 1 at a state that breaks the promise, after the history that leads to it.
 */
import { parseArgs } from "node:util"
import { explore } from "../src/explore.ts"

Error.stackTraceLimit = 0
const { values } = parseArgs({
  options: {
    workers: { type: "string", default: "3" }, crashes: { type: "string", default: "1" }, losses: { type: "string", default: "0" },
    leases: { type: "string", default: "1" }, restarts: { type: "string", default: "0" }
  }
})
const bounds = {
  workers: Number(values.workers), crashes: Number(values.crashes), losses: Number(values.losses), leases: Number(values.leases), restarts: Number(values.restarts)
}
const { broken, deepest, ends, states, transitions } = explore(bounds)
const within = Object.entries(bounds).map(([name, bound]) => `${bound} ${name}`).join(", ")
console.log(`${within}: ${states} states, ${transitions} transitions, ${ends} ends, ${deepest} steps deep: ${broken === undefined ? "no state breaks the promise" : broken.problem}`)
for (const action of broken?.history ?? []) console.log(`  ${JSON.stringify(action)}`)
process.exitCode = broken === undefined ? 0 : 1
