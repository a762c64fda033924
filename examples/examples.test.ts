/** Each example is run as a newcomer would, and each program in the README is one of them. */
import { assert, it } from "@effect/vitest"
import { StripeSim } from "@purser/stripe-sim"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const here = fileURLToPath(new URL(".", import.meta.url))
const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "purser-example-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const run = (file: string, env: Record<string, string>, until?: string) =>
  Effect.promise<string>(() =>
    new Promise((resolve) => {
      const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", join(here, file)], {
        env: { ...process.env, PURSER_DATABASE_URL: "", ...env }
      })
      let output = ""
      const read = (data: unknown) => {
        output += String(data)
        if (until !== undefined && output.includes(until)) child.kill("SIGTERM")
      }
      child.stdout.on("data", read)
      child.stderr.on("data", read)
      child.on("close", (code) => resolve(`${output}exit ${code}`))
    }))

it.live("charge.ts charges once, however often it is run", () =>
  Effect.scoped(Effect.gen(function*() {
    const sim = yield* StripeSim
    const env = { PURSER_DATA_DIR: yield* folder, PURSER_STRIPE_URL: sim.url, PURSER_STRIPE_KEY: "sk_test_example" }
    assert.include(yield* run("charge.ts", env), "Succeeded \nexit 0")
    assert.include(yield* run("charge.ts", env), "Succeeded (charged before)\nexit 0")
    assert.strictEqual(yield* sim.payments("cust_123", "2026-07"), 1)
  })).pipe(Effect.provide(StripeSim.layer())), 60_000)

it.live("worker.ts serves until it is stopped", () =>
  Effect.scoped(Effect.gen(function*() {
    const env = {
      PURSER_DATA_DIR: yield* folder,
      PURSER_STRIPE_KEY: "sk_test_example",
      PURSER_STRIPE_URL: "http://127.0.0.1:9",
      PURSER_ENDPOINT: `ipc://${yield* folder}/worker`
    }
    const output = yield* run("worker.ts", env, "serving")
    assert.include(output, "serving")
    assert.notInclude(output, "ERROR")
  })), 60_000)

it("the README shows these programs", () => {
  const readme = readFileSync(join(here, "../README.md"), "utf8")
  const blocks = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map((match) => match[1]!)
  assert.isAbove(blocks.length, 0)
  const files = ["worker.ts", "charge.ts", "lostReply.test.ts"].map((file) => readFileSync(join(here, file), "utf8"))
  for (const block of blocks) assert.include(files, block)
})
