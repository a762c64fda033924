/** Keys on the sockets between a run and its workers: who has one is served and named, who has none is not, and what he sent is kept. */
import { assert, describe, it } from "@effect/vitest"
import { chargeKeyOf, Ledger } from "@purser/core"
import { Database, PgLedger } from "@purser/postgres"
import { chargeFor } from "@purser/testkit"
import { generateKeyPair, publicCertificate, secretCertificate } from "@purser/transport-zeromq"
import { ConfigProvider, Effect, Layer, Redacted, Schedule } from "effect"
import { copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { atDesk, csv, type Desk, tens } from "../src/Desk.ts"
import { freePort } from "../src/Proxy.ts"

const transports = ["req-rep", "router-dealer", "push-pull"] as const

const eventsOf = (at: Desk, customer: string) =>
  Effect.flatMap(Ledger, (ledger) => ledger.events(chargeKeyOf(chargeFor(customer, "2026-07", { item: "base" })))).pipe(
    Effect.provide(PgLedger.layer.pipe(
      Layer.provide(Database.layerConfig),
      Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(at.env)))
    ))
  )

/** Keys of a fleet and of two producers, of whom the fleet knows one. */
const keysOf = Effect.fnUntraced(function*(at: Desk) {
  mkdirSync(at.pathOf("keys"))
  mkdirSync(at.pathOf("clients"))
  for (const name of ["fleet", "alice", "mallory"]) {
    const pair = yield* generateKeyPair
    writeFileSync(at.pathOf(`keys/${name}.key`), publicCertificate(name, pair))
    writeFileSync(at.pathOf(`keys/${name}.key_secret`), Redacted.value(secretCertificate(name, pair)))
  }
  copyFileSync(at.pathOf("keys/alice.key"), at.pathOf("clients/alice.key"))
  const of = (name: string) => ({ PURSER_CURVE_KEY_FILE: at.pathOf(`keys/${name}.key_secret`), PURSER_CURVE_SERVER_KEY: at.pathOf("keys/fleet.key") })
  return { fleet: { ...of("fleet"), PURSER_CURVE_CLIENTS: at.pathOf("clients") }, alice: of("alice"), mallory: of("mallory") }
})

describe("keys on the sockets", () => {
  it.live("keygen writes a pair once, the secret for its owner alone", () =>
    atDesk((at) =>
      Effect.gen(function*() {
        const made = yield* at.purser(["keygen", "fleet", "--out", "keys"])
        assert.strictEqual(made.code, 0, made.stderr)
        assert.strictEqual(statSync(at.pathOf("keys/fleet.key_secret")).mode & 0o777, 0o600)
        const before = readFileSync(at.pathOf("keys/fleet.key_secret"), "utf8")
        assert.notInclude(readFileSync(at.pathOf("keys/fleet.key"), "utf8"), /secret-key = "(.*)"/.exec(before)![1]!)
        const again = yield* at.purser(["keygen", "fleet", "--out", "keys"])
        assert.deepStrictEqual([again.code, readFileSync(at.pathOf("keys/fleet.key_secret"), "utf8")], [1, before])
      })), 120_000)

  for (const transport of transports) {
    it.live(`${transport}: a known key pays once per row under its name, an unknown one and none pay nothing`, () =>
      atDesk((at) =>
        Effect.gen(function*() {
          at.write("bills.csv", csv(...tens(5)))
          const { alice, fleet, mallory } = yield* keysOf(at)
          const endpoint = `tcp://127.0.0.1:${yield* freePort}`
          const worker = yield* at.start(["worker", "--transport", transport, "--endpoint", endpoint], fleet)
          yield* worker.says("worker on")
          const settings = { PURSER_REQUEST_TIMEOUT: "400 millis", PURSER_REQUEST_RETRIES: "2" }
          const args = ["run", "bills.csv", "--json", "--workers", "0", "--transport", transport, "--endpoint", endpoint]
          // The package's own tests refuse strangers on every pattern; here one is enough, and one without any key.
          for (const env of transport === "push-pull" ? [mallory] : transport === "req-rep" ? [{}] : []) {
            const refused = yield* at.purser(args, { ...settings, ...env, PURSER_RUN_PATIENCE: "2 seconds" })
            assert.notStrictEqual(refused.code, 0, refused.stdout)
            assert.deepStrictEqual(yield* at.paid, [])
          }
          const run = yield* at.purser(args, { ...settings, ...alice, PURSER_REQUEST_TIMEOUT: "20 seconds" })
          assert.deepStrictEqual([run.code, run.json?.["succeeded"]], [0, 5], run.stderr)
          const paid = yield* at.paid
          assert.deepStrictEqual([paid.length, paid.every(({ payments }) => payments === 1)], [5, true])
          const claimed = (yield* eventsOf(at, "c0")).filter(({ to }) => to === "claimed")
          assert.deepStrictEqual(claimed.map(({ principal }) => principal), ["alice"])
          const shown = yield* at.purser(["show", "c0", "2026-07", "--item", "base"])
          assert.match(shown.stdout, /asked by[^]*claimed[^]*alice/, shown.stderr)
          const asJson = JSON.parse((yield* at.purser(["show", "c0", "2026-07", "--item", "base", "--json"])).stdout)
          assert.deepStrictEqual(asJson.events.filter(({ to }: { to: string }) => to === "claimed").map(({ principal }: { principal: string }) => principal), ["alice"])
          const fed = yield* at.purser(["events", "--local", "--from", "beginning", "--once", "--json"])
          const askers = fed.stdout.trim().split("\n").map((line) => JSON.parse(line).event).filter((event) => event?.to === "claimed").map(({ principal }) => principal)
          assert.deepStrictEqual(askers, Array.from({ length: 5 }, () => "alice"))
        })), 180_000)
  }

  it.live("half a configuration is refused before anything is sent", () =>
    atDesk((at) =>
      Effect.gen(function*() {
        at.write("bills.csv", csv(...tens(1)))
        const { alice } = yield* keysOf(at)
        const bad: ReadonlyArray<readonly [string, Record<string, string>]> = [
          ["PURSER_CURVE_SERVER_KEY is set, but PURSER_CURVE_KEY_FILE is not", { PURSER_CURVE_SERVER_KEY: alice.PURSER_CURVE_SERVER_KEY }],
          ["holds no secret key", { PURSER_CURVE_KEY_FILE: at.pathOf("keys/alice.key") }],
          ["no such file", { PURSER_CURVE_KEY_FILE: at.pathOf("keys/nobody.key_secret") }],
          ["expected a public key of 40 characters", { ...alice, PURSER_CURVE_SERVER_KEY: "\"".repeat(40) }]
        ]
        for (const [text, env] of bad) {
          const { code, stderr } = yield* at.purser(["run", "bills.csv", "--yes"], env)
          assert.deepStrictEqual([code, stderr.includes(text)], [1, true], stderr)
        }
        assert.strictEqual(yield* at.calls, 0)
      })), 120_000)
})

describe("dead letters", () => {
  it.live("what a broker cannot read is answered, and kept where its database is", () =>
    atDesk((at) =>
      Effect.gen(function*() {
        const zmq = yield* Effect.promise(() => import("zeromq"))
        const endpoint = `tcp://127.0.0.1:${yield* freePort}`
        const broker = yield* at.start(["broker", "--endpoint", endpoint])
        yield* broker.says("a broker serves on")
        const dealer = yield* Effect.acquireRelease(Effect.sync(() => new zmq.Dealer({ linger: 0 })), (socket) => Effect.sync(() => socket.close()))
        dealer.connect(endpoint)
        const answer = yield* Effect.promise(() => dealer.send("noise").then(() => dealer.receive()))
        assert.strictEqual(JSON.parse(String(answer[0])).error.reason, "MalformedMessage")
        const [letter] = yield* at.purser(["dead-letters", "list", "--json"]).pipe(
          Effect.map(({ stdout }) => JSON.parse(stdout) as ReadonlyArray<{ readonly body: string; readonly transport: string }>),
          Effect.repeat({ until: (letters) => letters.length === 1, schedule: Schedule.spaced("100 millis") })
        )
        assert.deepStrictEqual([letter!.transport, Buffer.from(letter!.body, "base64").toString()], ["majordomo", "noise"])
      })), 120_000)

  it.live("what a worker cannot read is kept, listed, shown and thrown away, and the next bill is served", () =>
    atDesk((at) =>
      Effect.gen(function*() {
        const zmq = yield* Effect.promise(() => import("zeromq"))
        at.write("bills.csv", csv(...tens(1)))
        const endpoint = `tcp://127.0.0.1:${yield* freePort}`
        const worker = yield* at.start(["worker", "--transport", "push-pull", "--endpoint", endpoint])
        yield* worker.says("worker on")
        const push = yield* Effect.acquireRelease(Effect.sync(() => new zmq.Push({ linger: 1000 })), (socket) => Effect.sync(() => socket.close()))
        push.connect(endpoint)
        const garbage = ["\u001b[31mnot JSON", "{\"v\":2,\"client\":\"c\",\"items\":[]}", "{\"customer_id\":\"c\",\"billing_period\":\"2026-13\",\"amount_cents\":1,\"stripe_customer_id\":\"cus\"}"]
        for (const body of [...garbage, garbage[0]!]) yield* Effect.promise(() => push.send(body))
        const listed = yield* at.purser(["dead-letters", "list", "--json"]).pipe(
          Effect.map(({ stdout }) => JSON.parse(stdout) as ReadonlyArray<{ readonly digest: string; readonly times: number; readonly body: string; readonly reason: string; readonly transport: string }>),
          Effect.repeat({ until: (letters) => letters.reduce((sum, { times }) => sum + times, 0) === 4, schedule: Schedule.spaced("100 millis") })
        )
        assert.sameMembers(listed.map(({ body }) => Buffer.from(body, "base64").toString()), garbage)
        assert.deepStrictEqual([...new Set(listed.map(({ reason, transport }) => `${transport} ${reason}`))], ["push-pull MalformedMessage"])
        const worst = listed.find(({ times }) => times === 2)!
        const shown = yield* at.purser(["dead-letters", "show", worst.digest.slice(0, 10)])
        assert.include(shown.stdout, "\\u001b[31mnot JSON")
        assert.notInclude(shown.stdout, "\u001b")
        // Whoever sends a key has it kept, and nobody shown.
        const key = "rk_live_51HabcdefGHIJ"
        yield* Effect.promise(() => push.send(`{"api_key":"${key}","v":"\u00e9"}`))
        const secret = yield* at.purser(["dead-letters", "list", "--json", "--limit", "1"]).pipe(
          Effect.map(({ stdout }) => (JSON.parse(stdout) as ReadonlyArray<{ readonly digest: string; readonly body: string; readonly sizeBytes: number }>)[0]!),
          Effect.repeat({ until: ({ body }) => Buffer.from(body, "base64").toString().includes("api_key"), schedule: Schedule.spaced("100 millis") })
        )
        const hidden = "{\"api_key\":\"[secret]\",\"v\":\"\u00e9\"}"
        assert.deepStrictEqual([Buffer.from(secret.body, "base64").toString(), secret.sizeBytes], [hidden, Buffer.byteLength(hidden) + key.length - "[secret]".length])
        assert.include((yield* at.purser(["dead-letters", "show", secret.digest])).stdout, hidden)
        const discarded = yield* at.purser(["dead-letters", "discard", worst.digest])
        assert.include(discarded.stdout, "1 thrown away")
        const run = yield* at.purser(["run", "bills.csv", "--json", "--workers", "0", "--transport", "push-pull"], { PURSER_ENDPOINT: endpoint })
        assert.deepStrictEqual([run.code, run.json?.["succeeded"]], [0, 1], run.stderr)
      })), 120_000)
})
