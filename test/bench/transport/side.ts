/** One side in a process of its own: `side.ts server|client PATTERN PROGRAM ENDPOINT BACK COUNT`. Both say what they measured. */
import { Effect } from "effect"
import { heard, say, timed } from "../support/side.ts"
import type { Pattern, Program } from "./messages.ts"
import { connectOurs, serveOurs } from "./ours.ts"
import { connectRaw, serveRaw } from "./raw.ts"

const [side, pattern, program, endpoint, back, countText] = process.argv.slice(2) as [string, Pattern, Program, string, string, string]
const count = Number(countText)
const isRaw = program === "raw" || program === "raw with charges"
/**
 * The first ones open connections and let the compiler see the code: after 5,000 round trips one still costs six times the processor
 * time that it costs after 15,000.
 */
const warm = Math.max(20_000, count)

const measured = async (run: (count: number) => Promise<unknown>) => {
  await run(warm)
  const { cpuMicros, peakRssMb, tookMs } = await timed(count, () => run(count))
  say({ perSecond: count * 1000 / tookMs, cpuMicros, peakRssMb })
}

if (side === "server") {
  // Processor time tells what a request costs also on a machine that has other work.
  const loaded = process.cpuUsage()
  void heard().then(() => {
    const { system, user } = process.cpuUsage(loaded)
    say({ cpuMicros: (system + user) / (count + warm), peakRssMb: process.resourceUsage().maxRSS / 1024 })
    return heard().then(() => process.exit(0))
  })
  await (isRaw ? serveRaw(pattern, program, endpoint, back) : Effect.runPromise(serveOurs(pattern, program, endpoint, back)))
} else {
  await (isRaw
    ? connectRaw(pattern, program, endpoint, back).then(measured)
    : Effect.runPromise(Effect.scoped(Effect.flatMap(connectOurs(pattern, program, endpoint, back), (run) => Effect.promise(() => measured((n) => Effect.runPromise(run(n))))))))
  await heard()
  process.exit(0)
}
