/** One side in a process of its own: `side.ts server|client PATTERN PROGRAM ENDPOINT BACK COUNT`. A client prints its rate. */
import { Effect } from "effect"
import type { Pattern, Program } from "./messages.ts"
import { connectOurs, serveOurs } from "./ours.ts"
import { connectRaw, serveRaw } from "./raw.ts"

const [side, pattern, program, endpoint, back, countText] = process.argv.slice(2) as [string, Pattern, Program, string, string, string]
const count = Number(countText)

const measured = async (run: (count: number) => Promise<unknown>) => {
  // The first ones open connections and let the compiler see the code.
  await run(Math.ceil(count / 2))
  const began = performance.now()
  await run(count)
  process.stdout.write(`${count * 1000 / (performance.now() - began)}\n`)
}

process.on("SIGINT", () => process.exit(0))
if (side === "server") await (program === "raw" ? serveRaw(pattern, endpoint, back) : Effect.runPromise(serveOurs(pattern, program, endpoint)))
else if (program === "raw") await measured(await connectRaw(pattern, endpoint, back))
else await Effect.runPromise(Effect.scoped(Effect.flatMap(connectOurs(pattern, program, endpoint), (run) => Effect.promise(() => measured((n) => Effect.runPromise(run(n)))))))
process.exit(0)
