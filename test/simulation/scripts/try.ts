import { runScenario } from "../src/World.ts"
import { scenarioOf } from "../src/Scenario.ts"
Error.stackTraceLimit = 0
const from = Number(process.argv[2] ?? 1), n = Number(process.argv[3] ?? 5)
const t0 = performance.now()
let bad = 0
for (let i = from; i < from + n; i++) {
  const s = scenarioOf(String(i))
  const t = performance.now()
  const v = await runScenario(s)
  const ms = performance.now() - t
  if (v.violations.length > 0) { bad++; console.log(JSON.stringify(s.faults), JSON.stringify(s.charges)) }
  if (v.violations.length > 0 || process.argv[4] === "v" ) console.log(i, s.gateway, "idem", s.idempotency, "charges", s.charges.length, "faults", s.faults.map((f) => f.kind).join(","), `${ms.toFixed(0)} ms`, v.steps, v.simulatedMs / 1000, v.requests, v.payments, v.digest, v.violations)
}
console.log(n, "seeds", bad, "bad", ((performance.now() - t0) / n).toFixed(1), "ms each, cpu", (process.cpuUsage().user / 1000 / n).toFixed(1))
process.exit(0)
