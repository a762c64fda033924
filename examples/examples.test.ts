/** Each example is run as a newcomer would, and each program in the README is one of them. */
import { assert, it } from "@effect/vitest"
import { ChargeClient } from "@purser/core"
import { postgresUrlEmpty } from "@purser/postgres/TestDatabase"
import { StripeSim } from "@purser/stripe-sim"
import { chargeFor } from "@purser/testkit"
import { ZmqTransport } from "@purser/transport-zeromq"
import { Effect, Fiber, Redacted, Schedule } from "effect"
import { spawn } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const here = fileURLToPath(new URL(".", import.meta.url))
const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "purser-example-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const run = (file: string, env: Record<string, string>, stop?: AbortSignal, signal: NodeJS.Signals = "SIGTERM") =>
  Effect.promise<string>(() =>
    new Promise((resolve) => {
      const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", join(here, file)], {
        env: { ...process.env, PURSER_DATABASE_URL: "", ...env }
      })
      let output = ""
      const read = (data: unknown) => {
        output += String(data)
      }
      stop?.addEventListener("abort", () => child.kill(signal))
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
    assert.strictEqual(yield* sim.payments("cust_123", "2026-07", "subscription"), 1)
  })).pipe(Effect.provide(StripeSim.layer())), 60_000)

it.live("charge.ts without a key names it in one sentence", () =>
  Effect.gen(function*() {
    const said = yield* run("charge.ts", { PURSER_DATA_DIR: yield* folder, PURSER_STRIPE_KEY: "" })
    assert.match(said, /^PURSER_STRIPE_KEY is not set, or its value is not valid: [^\n]+\nexit 1$/)
  }).pipe(Effect.scoped), 60_000)

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
    const second = yield* run("worker.ts", { ...env, PURSER_DATA_DIR: yield* folder })
    assert.include(second, "EADDRINUSE")
    assert.match(second, /exit 1$/)
    stop.abort()
    assert.notInclude(yield* Fiber.join(worker), "ERROR")
    assert.deepStrictEqual(yield* sim.books, [])
  })).pipe(Effect.provide(StripeSim.layer())), 60_000)

it.live("metering.ts turns usage events into invoices, and bills each once, though it is killed on the way and run again", () =>
  Effect.scoped(Effect.gen(function*() {
    const sim = yield* StripeSim
    const receipts = join(yield* folder, "receipts")
    const env = {
      PURSER_DATABASE_URL: Redacted.value(yield* postgresUrlEmpty), PURSER_STRIPE_URL: sim.url, PURSER_STRIPE_KEY: "sk_test_example", PURSER_LEASE: "1 second", RECEIPTS: receipts
    }
    const figures = "3 succeeded, 5806 usd minor units"
    // The first confirm is carried out and never answered.
    yield* sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", times: "always" }, action: { kind: "delay", at: "after", delayMs: 600_000 } })
    const stop = new AbortController()
    const killed = yield* Effect.forkChild(run("metering.ts", env, stop.signal, "SIGKILL"))
    yield* Effect.repeat(sim.books, { until: (books) => books.some(({ payments }) => payments > 0), schedule: Schedule.spaced("20 millis") })
    stop.abort()
    assert.include(yield* Fiber.join(killed), "exit null")
    yield* sim.faults.clear
    yield* sim.faults.release
    assert.match(yield* run("metering.ts", env), new RegExp(`usage-2025-06 was finished: ${figures}\n[^]*exit 0$`))
    // By hand. acme: 108 thousands (100 × 0.40 + 8 × 0.25) and 30 GB days (× 0.03) are 42.90, less 10 %, and 19 % tax. birch: 200 GB
    // days and 20 %. cedar: 16 thousands and 5 GB days are 6.55, less 25 %. dune used less than the free requests.
    const books = (yield* sim.books).map(({ amountMinor, customer, item, payments }) => [customer, item, payments, amountMinor])
    assert.sameDeepMembers(books, [["acme", "usage", 1, 4595], ["birch", "usage", 1, 720], ["cedar", "usage", 1, 491]])
    assert.deepStrictEqual(readdirSync(receipts).sort(), ["acme-2025-06.json", "birch-2025-06.json", "cedar-2025-06.json"])
    assert.deepInclude(JSON.parse(readFileSync(join(receipts, "acme-2025-06.json"), "utf8")), { receivedMinor: 4595, currency: "usd" })
  })).pipe(Effect.provide(StripeSim.layer())), 60_000)

it("the page about workflows shows the step of other engines", () => {
  const page = readFileSync(join(here, "../docs/workflows.md"), "utf8")
  assert.include([...page.matchAll(/```ts\n([\s\S]*?)```/g)].map((match) => match[1]!), readFileSync(join(here, "activity.ts"), "utf8"))
})

it("the README shows these programs", () => {
  const readme = readFileSync(join(here, "../README.md"), "utf8")
  const blocks = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map((match) => match[1]!)
  assert.isAbove(blocks.length, 0)
  const files = ["worker.ts", "charge.ts", "lostReply.test.ts"].map((file) => readFileSync(join(here, file), "utf8"))
  for (const block of blocks) assert.include(files, block)
})
