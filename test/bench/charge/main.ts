/**
 * The comparison of the charges by itself, with programs and numbers of one's own:
 * `node charge/main.ts [--rounds 5] [--count 8000] [--in-flight 256] [--latency 0] [--program NAME]…`.
 *
 * Read the ratios, each of one round. The figures of the docs come from `pnpm bench`.
 */
import { withServer } from "../support/database.ts"
import { optionsOf } from "../support/options.ts"
import { ratios } from "../support/Suite.ts"
import { costFigure, shown, spread } from "../support/spread.ts"
import { compareCharges, rates } from "./compare.ts"
import { isProgram, programs } from "./programs.ts"

const usage = `node charge/main.ts [--rounds 5] [--count 8000] [--in-flight 256] [--latency 0] [--program NAME]…

programs: ${Object.keys(programs).join(", ")}`
const { complain, values } = optionsOf({
  rounds: { type: "string", default: "5" },
  count: { type: "string", default: "8000" },
  "in-flight": { type: "string", default: "256" },
  latency: { type: "string", default: "0" },
  program: { type: "string", multiple: true, default: Object.keys(programs).filter((name) => name !== "purser-embedded" && name !== "restate") }
}, usage)
const unknown = values.program.filter((name) => !isProgram(name))
if (unknown.length > 0) complain(`no program ${unknown.join(", ")}`)
const found = await withServer((server) =>
  compareCharges({ server, rounds: Number(values.rounds), say: () => undefined }, {
    programs: values.program.filter(isProgram), count: Number(values.count), inFlight: Number(values["in-flight"]), latencyMs: Number(values.latency)
  }))
const reference = found["by-hand-batched"]
for (const [program, charged] of Object.entries(found)) {
  const of = (read: (one: (typeof charged)[number]) => number | undefined) => costFigure(spread(charged.map((one) => read(one) ?? Number.NaN)).median)
  console.log(
    `${program.padEnd(16)} ${shown(spread(rates(charged))).padStart(24)} /s  ${reference === undefined ? "" : `${shown(spread(ratios(rates(charged), rates(reference))))} x by hand, batched  `}` +
      `${of(({ cost }) => cost.cpuMicros)} us + ${of(({ cost }) => cost.databaseCpuMicros)} us in the database, ${of(({ cost }) => cost.peakRssMb)} MB, ${of(({ cost }) => cost.transactions)} transactions, ` +
      `${of(({ cost }) => cost.statements)} statements, ${of(({ cost }) => cost.fsyncs)} fsyncs, ${of(({ cost }) => cost.walBytes)} B of WAL a charge`
  )
}
