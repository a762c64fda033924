/** Each example is run as a newcomer would, and each program in the README is one of them. */
import { assert, it } from "@effect/vitest"
import { ChargeClient } from "@purser/core"
import { StripeSim } from "@purser/stripe-sim"
import { chargeFor } from "@purser/testkit"
import { ZmqTransport } from "@purser/transport-zeromq"
import { Effect, Fiber } from "effect"
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

const run = (file: string, env: Record<string, string>, stop?: AbortSignal) =>
  Effect.promise<string>(() =>
    new Promise((resolve) => {
      const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", join(here, file)], {
        env: { ...process.env, PURSER_DATABASE_URL: "", ...env }
      })
      let output = ""
      const read = (data: unknown) => {
        output += String(data)
      }
      stop?.addEventListener("abort", () => child.kill("SIGTERM"))
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

it.live("worker.ts serves until it is stopped; without a cap it charges nobody", () =>
  Effect.scoped(Effect.gen(function*() {
    const sim = yield* StripeSim
    const endpoint = `ipc://${yield* folder}/worker`
    const env = { PURSER_DATA_DIR: yield* folder, PURSER_STRIPE_KEY: "sk_test_example", PURSER_STRIPE_URL: sim.url, PURSER_ENDPOINT: endpoint }
    const stop = new AbortController()
    const worker = yield* Effect.forkChild(run("worker.ts", env, stop.signal))
    const outcome = yield* Effect.flatMap(ChargeClient, (client) => client.submit(chargeFor("cust_123", "2026-07"))).pipe(
      Effect.provide(ZmqTransport.layerReqRepClient({ endpoint }))
    )
    assert.strictEqual(outcome._tag === "Rejected" ? outcome.code : outcome._tag, "cap_missing")
    stop.abort()
    assert.notInclude(yield* Fiber.join(worker), "ERROR")
    assert.deepStrictEqual(yield* sim.books, [])
  })).pipe(Effect.provide(StripeSim.layer())), 60_000)

it("the README shows these programs", () => {
  const readme = readFileSync(join(here, "../README.md"), "utf8")
  const blocks = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map((match) => match[1]!)
  assert.isAbove(blocks.length, 0)
  const files = ["worker.ts", "charge.ts", "lostReply.test.ts"].map((file) => readFileSync(join(here, file), "utf8"))
  for (const block of blocks) assert.include(files, block)
})
