/** Runs a fixture as a real process of this Node, so that a test can kill it. */
import { Effect, Queue } from "effect"
import { spawn } from "node:child_process"
import * as Path from "node:path"

export interface Program {
  /** The next line of its output. */
  readonly line: Effect.Effect<string>
  /** Every line so far that was not taken, without waiting. */
  readonly rest: Effect.Effect<Array<string>>
  readonly send: (line: string) => Effect.Effect<void>
  readonly kill: Effect.Effect<void>
  /** Closes its input, which asks the fixture to end, and waits for that. */
  readonly end: Effect.Effect<void>
}

export const startProgram = Effect.fnUntraced(function*(fixture: string, ...args: ReadonlyArray<string>) {
  const lines = yield* Queue.unbounded<string>()
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, [Path.join(import.meta.dirname, "../fixtures", fixture), ...args], { stdio: ["pipe", "pipe", "inherit"] })
    ),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  let rest = ""
  child.stdout.on("data", (chunk: Buffer) => {
    const parts = (rest + chunk.toString("utf8")).split("\n")
    rest = parts.pop()!
    Queue.offerAllUnsafe(lines, parts)
  })
  const ended = Effect.callback<void>((resume) => {
    if (child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
    child.once("close", () => resume(Effect.void))
  })
  const program: Program = {
    line: Queue.take(lines),
    rest: Queue.clear(lines),
    send: (line) => Effect.sync(() => child.stdin.write(`${line}\n`)),
    kill: Effect.andThen(Effect.sync(() => child.kill("SIGKILL")), ended),
    end: Effect.andThen(Effect.sync(() => child.stdin.end()), ended)
  }
  return program
})
