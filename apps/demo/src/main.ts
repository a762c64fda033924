/**
 * The story of this project in under a minute: bill 1,000 rows over ZeroMQ, kill the engine when money has moved and
 * the answer is lost, start it again, and let Stripe's own books say how often each customer paid. Then the same crash
 * with a naive worker.
 */
import { NodeRuntime } from "@effect/platform-node"
import { type BookEntry, StripeSim } from "@purser/stripe-sim"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { guardedRun } from "./guardedRun.ts"
import { naiveRun } from "./naiveRun.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))
const file = "examples/invoices-2026-07.csv"
const say = (text: string) => Effect.sync(() => void process.stdout.write(`${text}\n`))

/** What the demonstration reads of the summary that `run --json` ends with. */
type Summary =
  & Readonly<Record<"rows" | "succeeded" | "declined" | "unresolved" | "alreadySettled", number>>
  & Readonly<Record<"capMinor" | "paidMinor", Readonly<Record<string, number>>>>

interface Ended {
  readonly code: number | null
  readonly signal: string | null
  readonly json: Summary | undefined
  readonly errors: string
}

/** Runs `purser run` on the example; `fault` arms a fault point in it. */
const purserRun = (dataDir: string, url: string, fault: string) =>
  Effect.promise(() =>
    new Promise<Ended>((resolve) => {
      const child = spawn(
        process.execPath,
        ["--disable-warning=ExperimentalWarning", join(root, "apps/cli/test/support/purserWithFaults.ts"), "run", file, "--json", "--yes"],
        {
          cwd: root,
          env: {
            ...process.env,
            PURSER_FAULT: fault,
            PURSER_DATA_DIR: dataDir,
            PURSER_DATABASE_URL: "",
            PURSER_STRIPE_URL: url,
            PURSER_STRIPE_KEY: "sk_test_demo",
            PURSER_TRANSPORT: "req-rep"
          },
          stdio: ["ignore", "pipe", "pipe"]
        }
      )
      let output = ""
      let errors = ""
      child.stdout.on("data", (data) => output += String(data))
      child.stderr.on("data", (data) => errors += String(data))
      child.on("close", (code, signal) => {
        const last = output.trim().split("\n").at(-1) ?? ""
        resolve({ code, signal, errors, json: last.startsWith("{") ? JSON.parse(last) as Summary : undefined })
      })
    })
  )

const paid = (books: ReadonlyArray<BookEntry>) => books.reduce((sum, entry) => sum + entry.payments, 0)
const row = (name: string, value: string | number) => say(`  ${name.padEnd(46)}${String(value).padStart(12)}`)

const story = Effect.gen(function*() {
  const sim = yield* StripeSim
  const dataDir = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "purser-demo-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )
  yield* say(`Stripe simulator on ${sim.url}, embedded database in ${dataDir}`)
  yield* say(`\n1. Bill ${file} over ZeroMQ REQ/REP, and kill the engine right after its 400th confirmation`)
  yield* say("   whose answer is lost (SIGKILL) …")
  const first = yield* purserRun(dataDir, sim.url, "after-confirm:400")
  const atCrash = paid(yield* sim.books)
  if (first.signal !== "SIGKILL") return yield* Effect.die(new Error(`the engine was not killed: ${first.errors}`))
  yield* say(`   killed; ${atCrash} payments were made`)
  yield* say("\n2. Run the same command again …")
  const requestsBefore = (yield* sim.requests).length
  const second = yield* purserRun(dataDir, sim.url, "")
  if (second.json === undefined) return yield* Effect.die(new Error(`the second run did not finish: ${second.errors}`))
  const looked = (yield* sim.requests).slice(requestsBefore).filter((request) => request.method === "GET").length
  const books = yield* sim.books
  const twice = books.filter((entry) => entry.payments > 1).length
  const { json } = second
  const caps = Object.entries(json.capMinor)
  yield* row("rows", json.rows)
  yield* row("succeeded", json.succeeded)
  yield* row("declined", json.declined)
  yield* row("unresolved", json.unresolved)
  yield* row("repeated deliveries absorbed by the ledger", json.alreadySettled)
  yield* row("in doubt after the crash, decided by looking", looked)
  yield* row("payments, by the simulator's books", paid(books))
  yield* row("rows paid twice, by the simulator's books", twice)
  yield* row("cap used", caps.map(([currency, cap]) => `${currency} ${Math.round(((json.paidMinor[currency] ?? 0) / cap) * 100)}%`).join(", "))
  const wrong = twice > 0 || paid(books) !== json.succeeded || json.succeeded + json.declined !== json.rows

  yield* say("\n3. The same crash with a naive worker (idempotency key made from the socket's time) …")
  const naive = yield* naiveRun(400)
  yield* row("customers", naive.customers)
  yield* row("charged twice, by the simulator's books", naive.chargedTwice)

  yield* say("\n4. Three naive workers at the same customers, a new idempotency key for each try …")
  const guarded = yield* guardedRun(20)
  yield* row("customers", guarded.customers)
  yield* row("payments with a Stripe key, by the books", guarded.paymentsWithout)
  yield* row("payments through the spend-cap proxy", guarded.paymentsThrough)
  yield* say(`
Go on with your own file:
  npm run -s purser -- sim &
  export PURSER_STRIPE_URL=http://127.0.0.1:12111 PURSER_STRIPE_KEY=sk_test_sim
  npm run -s purser -- run ${file}
  npm run -s purser -- status
  curl -s http://127.0.0.1:12111/_sim/books | head -c 300
  npm run -s purser -- --help`)
  if (wrong || guarded.paymentsThrough !== guarded.customers) return yield* Effect.die(new Error("the books do not agree with the run"))
})

NodeRuntime.runMain(Effect.scoped(story.pipe(Effect.provide(StripeSim.layer()))))
