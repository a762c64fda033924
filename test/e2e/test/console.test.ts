/** `purser console` as a process: who may start it how, what its client is answered, and what a worker leaves in it. */
import { assert, describe, it } from "@effect/vitest"
import { ConsoleClient } from "@purser/console/ConsoleClient"
import { Effect, Fiber, Redacted, Stream } from "effect"
import { startConsole } from "../src/Console.ts"
import { atDesk, csv, tens } from "../src/Desk.ts"
import { freePort } from "../src/Proxy.ts"

const token = "a-token-of-the-tests"

describe("purser console", () => {
  it.live("does not open itself to others without a token", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      const open = yield* at.purser(["console", "--host", "0.0.0.0", "--port", "0"])
      assert.deepStrictEqual([open.code, open.stdout], [1, ""])
      assert.include(open.stderr, "PURSER_CONSOLE_TOKEN: on 0.0.0.0 others come by: a token is needed")
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
