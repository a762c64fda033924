/** One side in a process of its own: `side.ts server|client PATTERN PROGRAM ENDPOINT BACK COUNT`. Both print what they measured. */
import { Effect } from "effect"
import type { Pattern, Program } from "./messages.ts"
import { connectOurs, serveOurs } from "./ours.ts"
import { connectRaw, serveRaw } from "./raw.ts"

const [side, pattern, program, endpoint, back, countText] = process.argv.slice(2) as [string, Pattern, Program, string, string, string]
const count = Number(countText)

const micros = ({ system, user }: NodeJS.CpuUsage) => system + user

const measured = async (run: (count: number) => Promise<unknown>) => {
  // The first ones open connections and let the compiler see the code.
  await run(Math.ceil(count / 2))
  const cpu = process.cpuUsage()
  const began = performance.now()
  await run(count)
  process.stdout.write(JSON.stringify({ perSecond: count * 1000 / (performance.now() - began), cpuMicros: micros(process.cpuUsage(cpu)) / count }))
}

// Processor time tells what a request costs also on a machine that has other work.
const loaded = process.cpuUsage()
process.on("SIGINT", () => {
  if (side === "server") process.stdout.write(JSON.stringify({ cpuMicros: micros(process.cpuUsage(loaded)) / (count + Math.ceil(count / 2)) }))
  process.exit(0)
})
if (side === "server") await (program === "raw" ? serveRaw(pattern, endpoint, back) : Effect.runPromise(serveOurs(pattern, program, endpoint)))
else if (program === "raw") await measured(await connectRaw(pattern, endpoint, back))
else await Effect.runPromise(Effect.scoped(Effect.flatMap(connectOurs(pattern, program, endpoint, count), (run) => Effect.promise(() => measured((n) => Effect.runPromise(run(n)))))))
process.exit(0)
