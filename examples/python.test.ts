/**
 * The producer in Python with a Purser worker. Where Python has pyzmq its own socket is used; elsewhere what it would send goes through a
 * socket of this process, byte for byte.
 */
import { assert, it } from "@effect/vitest"
import { postgresUrl } from "@purser/postgres/TestDatabase"
import { Purser } from "@purser/purser"
import { StripeSim } from "@purser/stripe-sim"
import { Effect, Redacted } from "effect"
import { spawn, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import * as zmq from "zeromq"

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const python = ["/usr/bin/python3", "python3"].find((command) => spawnSync(command, ["--version"]).status === 0)
const hasZmq = python !== undefined && spawnSync(python, ["-c", "import zmq"]).status === 0

/** The producer with a line to this process instead of a socket. */
const relayed = `
import json, sys
sys.path.insert(0, sys.argv[1])
import producer

def ask(endpoint, text, timeout_ms):
    print("@" + json.dumps(text), flush=True)
    return json.loads(sys.stdin.readline())

sys.exit(producer.main(sys.argv[2], ask=ask))
`

interface Billed {
  readonly lines: ReadonlyArray<string>
  readonly code: number | null
}

const bill = (endpoint: string, file: string): Effect.Effect<Billed> =>
  Effect.callback((resume) => {
    const folder = here("python")
    const child = spawn(python!, hasZmq ? [join(folder, "producer.py"), file, endpoint] : ["-c", relayed, folder, file], { env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" }, stdio: ["pipe", "pipe", "ignore"] })
    const socket = new zmq.Request({ linger: 0 })
    socket.connect(endpoint)
    const lines: Array<string> = []
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (!line.startsWith("@")) return lines.push(line)
      return socket.send(JSON.parse(line.slice(1)) as string).then(() => socket.receive()).then(([answer]) => child.stdin.write(`${JSON.stringify(String(answer))}\n`))
    })
    child.on("close", (code) => {
      socket.close()
      resume(Effect.succeed({ lines, code }))
    })
  })

it.live("bills a file through a worker, and again without charging anybody", () =>
  Effect.gen(function*() {
    const sim = yield* StripeSim
    const folder = yield* Effect.acquireRelease(Effect.sync(() => mkdtempSync(join(tmpdir(), "purser-python-"))), (path) => Effect.sync(() => rmSync(path, { recursive: true })))
    const file = join(folder, "bills.csv")
    writeFileSync(file, [
      "customer_id,billing_period,amount,currency,stripe_customer_id,payment_method,item",
      "acme,2026-07,12.50,USD,cus_acme,pm_card_visa,base", "birch,2026-07,30.00,USD,cus_birch,pm_card_visa,", "cedar,2026-Q3,7.25,USD,cus_cedar,pm_card_visa,base",
      "dune,2026-07,7.25,USD,cus_dune,pm_card_visa_chargeDeclined,base"
    ].join("\n"))
    const endpoint = `ipc://${folder}/worker`
    const env = { PURSER_DATABASE_URL: Redacted.value(yield* postgresUrl), PURSER_STRIPE_URL: sim.url, PURSER_STRIPE_KEY: "sk_test_python", PURSER_ENDPOINT: endpoint }
    const purser = yield* Effect.promise(() => Purser.make(env))
    yield* Effect.promise(() => purser.openCap({ billingPeriod: "2026-07", currency: "usd", expectedMinor: 10_000 }))
    yield* Effect.promise(() => purser.close())
    yield* Effect.acquireRelease(
      Effect.sync(() => spawn(process.execPath, ["--disable-warning=ExperimentalWarning", here("worker.ts")], { env: { ...process.env, ...env }, stdio: "ignore" })),
      (worker) => Effect.sync(() => worker.kill("SIGKILL"))
    )
    if (python === undefined) return
    const first = yield* bill(endpoint, file)
    assert.deepStrictEqual(first, {
      lines: ["acme 2026-07 Succeeded ", "birch 2026-07 Succeeded ", "cedar 2026-Q3 Rejected cap_missing", "dune 2026-07 Declined card_declined"], code: 2
    })
    const again = yield* bill(endpoint, file)
    assert.deepStrictEqual(again.lines.slice(0, 2), ["acme 2026-07 Succeeded before", "birch 2026-07 Succeeded before"])
    // One row that cannot be read exactly, and nobody is asked for money.
    writeFileSync(file, "customer_id,billing_period,amount,currency,stripe_customer_id,payment_method,item\nelm,2026-07,5.00,USD,cus_elm,pm_card_visa,\nfir,2026-07,5.00,XXX,cus_fir,pm_card_visa,\n")
    assert.deepStrictEqual(yield* bill(endpoint, file), { lines: [], code: 1 })
    const books = (yield* sim.books).filter(({ payments }) => payments > 0).map(({ amountMinor, customer, payments }) => [customer, amountMinor, payments])
    assert.sameDeepMembers(books, [["acme", 1250, 1], ["birch", 3000, 1]])
  }).pipe(Effect.scoped, Effect.provide(StripeSim.layer())), 90_000)
