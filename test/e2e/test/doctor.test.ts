/** `purser doctor` through the command: every check tells what it found, whatever the others found. */
import { assert, describe, it } from "@effect/vitest"
import { postgresUrlEmpty } from "@purser/postgres/TestDatabase"
import { Effect, Redacted } from "effect"
import { createServer, type AddressInfo } from "node:net"
import { atDesk, type Desk } from "../src/Desk.ts"
import { freePort } from "../src/Proxy.ts"

interface Finding {
  readonly check: string
  readonly level: string
  readonly text: string
}

const key = "rk_test_doctor"
const ask = Effect.fnUntraced(function*(at: Desk, args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) {
  const port = yield* freePort
  const ended = yield* at.purser(["doctor", ...args, "--json"], { PURSER_STRIPE_KEY: key, PURSER_ENDPOINT: `tcp://127.0.0.1:${port}`, ...env })
  const findings = (ended.json?.["findings"] ?? []) as ReadonlyArray<Finding>
  const of = (check: string) => findings.filter((found) => found.check === check).map(({ level, text }) => `${level}: ${text}`)
  return { ended, of, levels: new Set(findings.map(({ level }) => level)) }
})
const exact = { key, permissions: { payment_intent: "write", customer: "read" } } as const

describe("purser doctor", () => {
  it.live("finds nothing wrong before a run that can be made, and changes nothing", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      yield* at.sim.permitKey(exact)
      const server = { PURSER_DATABASE_URL: Redacted.value(yield* postgresUrlEmpty) }
      const fresh = yield* ask(at, ["2026-07"], server)
      assert.deepStrictEqual(fresh.of("schema"), ["warn: no tables yet; the next command brings it up to date"])
      // It has looked and not migrated.
      assert.deepStrictEqual((yield* ask(at, ["2026-07"], server)).of("schema"), fresh.of("schema"))
      yield* at.purser(["cap", "open", "2026-07", "--currency", "usd", "--expected-total", "100.00"])
      const { ended, levels, of } = yield* ask(at, ["2026-07"])
      assert.strictEqual(ended.code, 0, ended.stdout)
      assert.deepStrictEqual(levels, new Set(["ok"]))
      assert.deepStrictEqual(of("key"), ["ok: the permissions for payment_intents, and no others"])
      assert.deepStrictEqual(of("cap"), ["ok: 2026-07 usd zmq-billing: 0.00 of 110.00 used"])
      assert.deepStrictEqual(of("runs"), ["ok: no runner is heard of, and no run waits for one"])
      assert.strictEqual(of("clock").length, 2)
      assert.match(of("database")[0] ?? "", /^ok: .*PostgreSQL \d+/)
      assert.match(of("sockets")[0] ?? "", /free: a worker can serve there/)
      assert.deepStrictEqual(yield* at.sim.books, [])
    })), 120_000)

  it.live("names the permission that is missing, those that are too many, the cap that is not open, and the pause", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      yield* at.sim.permitKey({ key, permissions: { payment_intent: "read", customer: "write", charge: "write" } })
      yield* at.purser(["pause", "stripe", "--reason", "an incident"])
      const { ended, of } = yield* ask(at, ["2026-07"])
      assert.strictEqual(ended.code, 1)
      assert.sameMembers(of("key"), [
        "fail: payment_intent write is missing",
        "warn: customer write is granted and not needed for payment_intents",
        "warn: charge write is granted and not needed for payment_intents"
      ])
      assert.match(of("cap")[0] ?? "", /^fail: no cap is open for 2026-07/)
      assert.match(of("pause")[0] ?? "", /^warn: charging is paused since .*: an incident/)
      const refunds = yield* ask(at, ["--for", "refunds"])
      assert.notInclude(refunds.of("key").join(), "charge write is granted")
      assert.match(refunds.of("cap")[0] ?? "", /^warn/)
    })), 120_000)

  it.live("goes on when the database or Stripe is away", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      yield* at.sim.permitKey(exact)
      const noDatabase = yield* ask(at, ["2026-07"], { PURSER_DATABASE_URL: `postgres://u:p@127.0.0.1:${yield* freePort}/x` })
      assert.strictEqual(noDatabase.ended.code, 1)
      assert.match(noDatabase.of("database")[0] ?? "", /^fail/)
      assert.deepStrictEqual(noDatabase.of("key"), ["ok: the permissions for payment_intents, and no others"])
      const noStripe = yield* ask(at, [], { PURSER_STRIPE_URL: `http://127.0.0.1:${yield* freePort}` })
      assert.strictEqual(noStripe.ended.code, 1)
      assert.match(noStripe.of("stripe")[0] ?? "", /^fail/)
      assert.match(noStripe.of("database")[0] ?? "", /^ok/)
      const noKey = yield* ask(at, [], { PURSER_STRIPE_KEY: "pk_test_1" })
      assert.match(noKey.of("stripe")[0] ?? "", /^fail: the Stripe key is refused: it is a publishable key/)
    })), 120_000)

  it.live("looks at every address of the transport", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      yield* at.sim.permitKey(exact)
      const server = yield* Effect.acquireRelease(
        Effect.callback<ReturnType<typeof createServer>>((resume) => {
          const made = createServer((socket) => socket.destroy())
          made.listen(0, "127.0.0.1", () => resume(Effect.succeed(made)))
        }),
        (made) => Effect.sync(() => void made.close())
      )
      const taken = (server.address() as AddressInfo).port
      const free = yield* freePort
      const { of } = yield* ask(at, [], {
        PURSER_ENDPOINT: `tcp://127.0.0.1:${taken}, >tcp://127.0.0.1:${free}, ipc://${at.pathOf("no/such/folder.ipc")}, ipc://${at.pathOf("fine.ipc")}, udp://x`
      })
      assert.deepStrictEqual(of("sockets").map((text) => /^(\w+): .*?: (?=[a-z])(.*?)( \(|;|:|$)/.exec(text)?.slice(1, 3).join(" ")), [
        "ok something serves there",
        "fail nothing answers there",
        "fail nothing answers there, and it cannot be served from here",
        "ok free",
        "fail no address of the kind tcp"
      ])
    })), 120_000)

  it.live("tells people in a table", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      yield* at.sim.permitKey({ key, permissions: { customer: "read" } })
      const ended = yield* at.purser(["doctor"], { PURSER_STRIPE_KEY: key })
      assert.strictEqual(ended.code, 1)
      assert.match(ended.stdout, /fail +key +payment_intent write is missing/)
      assert.match(ended.stderr, /\d of \d+ checks failed/)
    })), 120_000)
})
