/**
 * Loaded into a process before everything else (`node --import`): its clock is wrong by `CHAOS_CLOCK_OFFSET_MS`, and jumps by
 * `CHAOS_CLOCK_JUMP_MS` with each SIGUSR2, as after a correction by hand. Every clock that JavaScript has is moved; timers run on.
 * With `CHAOS_MEMORY_FILE` SIGUSR2 also collects what is garbage and notes what is left.
 */
import { writeFileSync } from "node:fs"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

let offsetMs = Number(process.env["CHAOS_CLOCK_OFFSET_MS"] ?? 0)
const jumpMs = Number(process.env["CHAOS_CLOCK_JUMP_MS"] ?? 0)
const memoryFile = process.env["CHAOS_MEMORY_FILE"]
const Real = Date
const now = Real.now.bind(Real)

class MovedDate extends Real {
  constructor(...args: ReadonlyArray<unknown>) {
    if (args.length === 0) super(now() + offsetMs)
    else super(...args as [number])
  }
  static override now = () => now() + offsetMs
}
if (offsetMs !== 0 || jumpMs !== 0) globalThis.Date = MovedDate as DateConstructor

let collect: (() => void) | undefined
if (memoryFile !== undefined) {
  setFlagsFromString("--expose-gc")
  collect = runInNewContext("gc") as () => void
}

process.on("SIGUSR2", () => {
  offsetMs += jumpMs
  if (collect === undefined || memoryFile === undefined) return
  collect()
  collect()
  writeFileSync(memoryFile, JSON.stringify({ atMs: now(), ...process.memoryUsage() }))
})
