/** `purser console` as a process: who may start it how, what its client is answered, and what a worker leaves in it. */
import { assert, describe, it } from "@effect/vitest"
import { ConsoleClient } from "@purser/console/ConsoleClient"
import { Database } from "@purser/postgres"
import { Effect, Fiber, Redacted, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { startConsole } from "../src/Console.ts"
import { atDesk, csv, inPairs, tens } from "../src/Desk.ts"
import { freePort } from "../src/Proxy.ts"

const token = "a-token-of-the-tests"

describe("purser console", () => {
  it.live("does not open itself to others without a token", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      const open = yield* at.purser(["console", "--host", "0.0.0.0", "--port", "0"])
      assert.deepStrictEqual([open.code, open.stdout], [1, ""])
      assert.include(open.stderr, "PURSER_CONSOLE_TOKEN: on 0.0.0.0 others come by: a token is needed")
    })), 60_000)

  it.live("and every other server say where they cannot listen, and why", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      const { url } = yield* startConsole(at)
      const { host, port } = new URL(url)
      const both = { PURSER_CONSOLE_TOKEN: token, PURSER_CONSOLE_ALLOW_PLAIN: "true", PURSER_WEBHOOK_SECRET: "whsec_of_a_test" }
      const ended = yield* inPairs([
        at.purser(["console", "--port", port]),
        at.purser(["webhooks", "--port", port], both),
        at.purser(["console", "--host", "192.0.2.1", "--port", "0"], both),
        at.purser(["sim", "--port", port]),
        at.purser(["proxy", "--port", port], { PURSER_PROXY_UPSTREAM: at.sim.url, PURSER_PROXY_STRIPE_KEY: "sk_test_of_a_test" }),
        ...[["console", "99999"], ["console", "-1"], ["webhooks", "99999"], ["sim", "-1"], ["proxy", "99999"]].map(([command, no]) => at.purser([command!, `--port=${no}`], both))
      ])
      const said = ended.map(({ code, stderr, stdout }) => [code, `${stdout}${stderr}`] as const)
      assert.isTrue(said.every(([code, text]) => code === 1 && !/\n\s+at /.test(text)), JSON.stringify(said))
      assert.include(said[0]![1], `purser console cannot listen on ${host}: another program listens there (EADDRINUSE)`)
      assert.include(said[1]![1], `purser webhooks cannot listen on ${host}: another program listens there (EADDRINUSE)`)
      assert.include(said[2]![1], "purser console cannot listen on 192.0.2.1:0: this machine has no such address (EADDRNOTAVAIL)")
      assert.include(said[3]![1], `the simulator cannot listen on ${host}: another program listens there (EADDRINUSE)`)
      assert.include(said[4]![1], `the spend-cap proxy cannot listen on ${host}: another program listens there (EADDRINUSE)`)
      for (const [, text] of said.slice(5)) assert.include(text, "--port must be from 0 to 65535")
    })), 60_000)

  it.live("what a terminal would obey is refused in a reason and a name, and escaped where an old one is shown", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      const bad = "x\ny\u001b[2J\u202e"
      for (const given of [["--reason", bad], ["--reason", "why not", "--actor", bad]]) {
        const refused = yield* at.purser(["pause", "stripe", ...given])
        assert.deepStrictEqual([refused.code, refused.stderr.includes("must not contain control characters")], [1, true], refused.stderr)
      }
      yield* at.purser(["pause", "stripe", "--reason", "month's end"])
      yield* Effect.provide(
        Effect.flatMap(SqlClient.SqlClient, (sql) => sql`update purser.pauses set reason = ${bad}, actor = ${bad}`),
        Database.layerUrl(Redacted.make(at.env["PURSER_DATABASE_URL"]!), { maxConnections: 1 })
      )
      for (const command of [["status"], ["doctor"], ["status", "--json"]]) {
        const { stdout } = yield* at.purser(command)
        assert.include(stdout, command.includes("--json") ? "x\\ny\\u001b[2J\\u202e" : "x\\u000ay\\u001b[2J\\u202e")
        assert.isFalse(["\u001b", "\u202e"].some((hidden) => stdout.includes(hidden)), stdout)
      }
    })), 60_000)

  it.live("shows a run and its worker to whoever has the token, and ends when it is told to", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      const { running, url } = yield* startConsole(at, [], { PURSER_CONSOLE_TOKEN: token })
      const calling = <A, E>(use: (api: ConsoleClient["Service"]) => Effect.Effect<A, E>) =>
        Effect.provide(Effect.flatMap(ConsoleClient, use), ConsoleClient.layer({ url, token: Redacted.make(token), actor: "a test" }))
      const stranger = yield* Effect.flip(Effect.provide(Effect.flatMap(ConsoleClient, (api) => api.session.get()), ConsoleClient.layer({ url })))
      assert.strictEqual(stranger._tag, "SignInNeeded")

      const endpoint = `tcp://127.0.0.1:${yield* freePort}`
      const worker = yield* at.start(["worker", "--endpoint", endpoint], { PURSER_WORKER: "worker-of-tests", PURSER_WORKER_BEAT: "100 millis" })
      yield* worker.says(`starting a worker on ${endpoint}`)
      at.write("bills.csv", csv(...tens(6)))
      const ended = yield* at.purser(["run", "bills.csv", "--json", "--workers", "0"], { PURSER_ENDPOINT: endpoint })
      assert.strictEqual(ended.code, 0, ended.stderr)
      const { runs } = yield* calling((api) => api.runs.list({ query: {} }))
      assert.deepStrictEqual(runs.map(({ acts, rows, source }) => [source.split("/").at(-1), rows, acts]), [["bills.csv", 6, []]])
      const view = yield* calling((api) => api.runs.view({ params: { runId: runs[0]!.runId } }))
      assert.deepStrictEqual([view.open, view.groups.map(({ receivedMinor, state }) => [state, receivedMinor])], [0, [["succeeded", 6000n]]])
      const { workers } = yield* calling((api) => api.workers.list())
      const [one] = workers.filter((line) => line.worker === "worker-of-tests")
      assert.deepStrictEqual([one?.life, one?.settledLastMinute, one?.serves], ["beating", 6, `requests on ${endpoint}`])
      const first = yield* calling((api) => Effect.flatMap(api.session.live(), (pulses) => Stream.runCollect(Stream.take(pulses, 1))))
      assert.deepStrictEqual(first.map(({ pauses }) => pauses), [[]])

      yield* worker.kill("SIGTERM")
      yield* worker.ended
      const gone = (yield* calling((api) => api.workers.list())).workers.find((line) => line.worker === "worker-of-tests")
      assert.strictEqual(gone?.life, "stopped")
      // Whoever follows does not hold it up.
      const following = yield* Effect.forkChild(calling((api) => Effect.flatMap(api.session.live(), Stream.runDrain)))
      yield* calling((api) => Effect.flatMap(api.session.live(), (pulses) => Stream.runDrain(Stream.take(pulses, 1))))
      yield* running.kill("SIGTERM")
      assert.strictEqual((yield* running.ended).code, 0)
      yield* Fiber.await(following)
    })), 120_000)
})
