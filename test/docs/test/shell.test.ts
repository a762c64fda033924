/** Whoever types what the pages show gets no error: each page's shell blocks are run in a folder of their own, against the simulator. */
import { assert, describe, it } from "@effect/vitest"
import { postgresUrl, postgresUrlEmpty } from "@purser/postgres/TestDatabase"
import { StripeSim } from "@purser/stripe-sim"
import { Effect, Random, Redacted } from "effect"
import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { blocksOf, pagePaths, readText, root } from "../src/Pages.ts"
import { followedBlocks, notFollowed, pagePorts, placed, prelude, reasonOf } from "../src/Shell.ts"

const invoices = `customer_id,billing_period,amount,currency,stripe_customer_id,payment_method,item
acme,2026-07,12.50,USD,cus_acme,pm_card_visa,base
birch,2026-07,12.74,USD,cus_birch,pm_card_visa,base
cedar,2026-07,7.25,USD,cus_cedar,pm_card_visa,base
`

/** One charge that was made. */
const paid = [
  "printf 'customer_id,billing_period,amount,currency,stripe_customer_id,payment_method,item\\ncust_123,2026-07,28.50,USD,cus_123,pm_card_visa,base\\n' > paid.csv",
  "purser run paid.csv --yes --expected-total 100.00"
].join("\n")

/** What the reader of a page has done before, where the page says so. */
const before: Readonly<Record<string, string>> = {
  "docs/how-to/charges-to-payment-intents.md": "purser cap open 2026-08 --currency usd --expected-total 100.00",
  "docs/how-to/migrate-a-pyzmq-fleet.md": "export PURSER_METRICS_LISTEN=9464",
  "docs/how-to/upgrade-without-stopping.md": "purser cap open 2026-07 --currency usd --expected-total 100.00",
  "docs/operations.md": "purser cap open 2026-07 --currency usd --expected-total 100.00",
  "docs/how-to/resolve-an-unknown-outcome.md": paid,
  "docs/stripe.md": paid,
  "docs/workflows.md": "cp invoices.csv invoices-2026-07.csv\npurser cap open 2026-07 --currency usd --expected-total 100.00"
}

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "purser-shell-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** A port below those that the system gives to whoever connects: until a page comes to use it, nobody else is given it. */
const freePort: Effect.Effect<number> = Effect.gen(function*() {
  const port = yield* Random.nextIntBetween(20_000, 32_000)
  const isFree = yield* Effect.callback<boolean>((resume) => {
    const server = createServer().once("error", () => resume(Effect.succeed(false)))
    server.listen(port, "127.0.0.1", () => server.close(() => resume(Effect.succeed(true))))
  })
  return isFree ? port : yield* freePort
})

const bash = (script: string, env: Readonly<Record<string, string>>, cwd: string) =>
  Effect.callback<{ readonly code: number | null; readonly said: string }>((resume) => {
    const own = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("PURSER_")))
    const child = spawn("bash", ["-c", script], { cwd, env: { ...own, ...env }, stdio: ["ignore", "pipe", "pipe"] })
    let said = ""
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => said += String(data))
    child.on("close", (code) => resume(Effect.succeed({ code, said })))
    return Effect.sync(() => void child.kill("SIGTERM"))
  })

const follow = Effect.fnUntraced(function*(page: string) {
  const sim = yield* StripeSim
  const cwd = yield* folder
  const logs = yield* folder
  writeFileSync(join(cwd, "invoices.csv"), invoices)
  mkdirSync(join(cwd, "data"))
  const ports = new Map(yield* Effect.forEach(pagePorts, (port) => Effect.map(freePort, (free) => [port, free] as const)))
  const ledger = Redacted.value(yield* postgresUrl)
  const followed = followedBlocks(page)
  // A database takes longer to make than a page's command.
  const proxied = followed.some(({ text }) => /proxy|vault/i.test(text))
  const ofProxy = proxied ? Effect.map(postgresUrlEmpty, Redacted.value) : Effect.succeed("postgres://nobody@127.0.0.1:1/none")
  const env = {
    ROOT: root, NODE: process.execPath, COMMAND: process.env["PURSER_TEST_COMMAND"]!, LOGS: logs, VAULT_KEY: join(logs, "key"), LEDGER_URL: ledger,
    VAULTS_URL: yield* ofProxy, PURSER_DATABASE_URL: ledger, PURSER_STRIPE_URL: sim.url, PURSER_STRIPE_KEY: "sk_test_of_the_page",
    PURSER_PROXY_DATABASE_URL: yield* ofProxy, PURSER_PROXY_UPSTREAM: sim.url, PURSER_PROXY_PORT: String(ports.get(12112)), PURSER_CONSOLE_PORT: String(ports.get(4280)),
    SIM_PORT: String(ports.get(12111)), PURSER_ENDPOINT: `tcp://127.0.0.1:${ports.get(5555)}`
  }
  const blocks = followed.map(({ line, text }) => `echo "${page}:${line}" >&2\n${placed(text, ports)}`)
  const { code, said } = yield* bash([prelude, placed(before[page] ?? "", ports), ...blocks].join("\n"), env, cwd)
  assert.strictEqual(code, 0, said)
  return said
})

const shown = pagePaths().filter((page) => followedBlocks(page).length > 0)
/** Several programs each, which every run need not start again. */
const slow: ReadonlyArray<string> = [
  "docs/how-to/postgres-and-machines.md", "docs/how-to/run-the-proxy.md", "docs/how-to/swap-the-transport.md", "docs/operations.md", "docs/telemetry.md", "docs/workflows.md"
]
const ofThisRun = process.env["PURSER_TEST_LONG"] === undefined ? shown.filter((page) => !slow.includes(page)) : shown

describe("the shell blocks of a page", () => {
  it.live.each(ofThisRun.filter((page) => page !== "docs/tutorial.md"))("%s can be typed", (page) =>
    Effect.scoped(follow(page)).pipe(Effect.provide(StripeSim.layer())), 300_000)

  it("are followed, or there is a reason why not", () => {
    assert.deepStrictEqual(slow.filter((page) => !shown.includes(page)), [])
    const blocks = pagePaths().flatMap((page) => blocksOf(readText(page)).filter(({ language }) => language === "sh").map((block) => ({ page, block })))
    assert.isAbove(blocks.filter(({ block, page }) => reasonOf(page, block) === undefined).length, 40)
    const idle = notFollowed.filter(({ begins, page }) => !blocks.some((one) => one.page === page && one.block.text.startsWith(begins)))
    assert.deepStrictEqual(idle, [])
  })

  it.live("would be seen to fail", () =>
    Effect.gen(function*() {
      const cwd = yield* folder
      const env = { PURSER_STRIPE_KEY: "sk_test_of_the_page", NODE: process.execPath, COMMAND: process.env["PURSER_TEST_COMMAND"]!, LOGS: cwd, VAULT_KEY: join(cwd, "key"), ROOT: root }
      const { code, said } = yield* bash(`${prelude}purser run nowhere.csv --expected-total 1\necho after`, env, cwd)
      assert.strictEqual(code, 1)
      assert.include(said, "nowhere.csv")
      assert.notInclude(said, "after")
      assert.strictEqual(placed("purser worker --endpoint tcp://10.0.0.7:5555 &   # at 5555", new Map([[5555, 61]])), "purser worker --endpoint tcp://127.0.0.1:61 # at 5555")
    }).pipe(Effect.scoped), 60_000)
})
