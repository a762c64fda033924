/** A run that is stopped by a signal, and two processes that want one folder. */
import { assert, describe, it } from "@effect/vitest"
import { StripeSim } from "@purser/stripe-sim"
import { Effect } from "effect"
import { csv, desk, paidAtLeast, tens } from "../src/Desk.ts"
import { stores } from "../src/Store.ts"

const rows = 16

describe("a run that is stopped", () => {
  for (const [index, [name, store]] of stores.entries()) {
    const signal = index === 0 ? "SIGINT" as const : "SIGTERM" as const
    it.live(`by ${signal} on ${name} ends with 130, and the same command finishes it: one payment per row`, () =>
      Effect.scoped(Effect.gen(function*() {
        const at = yield* desk(store)
        at.write("bills.csv", csv(...tens(rows)))
        const args = ["run", "bills.csv", "--json", "--concurrency", "2"]
        // The fourth confirm arrives and stays without an answer, and so does each one after it: the stop meets a run in its middle.
        yield* at.sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", nth: 4, times: "always" }, action: { kind: "delay", at: "after", delayMs: 600_000 } })
        const running = yield* at.start(args, { PURSER_DRAIN_TIMEOUT: "100 millis" })
        yield* running.meanwhile(paidAtLeast(at.sim, 5))
        yield* running.kill(signal)
        const stopped = yield* running.ended
        assert.deepStrictEqual([stopped.code, stopped.signal], [130, null], stopped.stderr)
        assert.strictEqual(stopped.stdout, "")
        assert.include(stopped.stderr, "Run the same command again to go on.")
        assert.isBelow((yield* at.paid).length, rows)

        yield* at.sim.faults.clear
        yield* at.sim.faults.release
        const finished = yield* at.purser(args)
        assert.strictEqual(finished.code, 0, finished.stderr)
        assert.strictEqual(finished.json?.["succeeded"], rows)
        const books = yield* at.paid
        assert.deepStrictEqual([books.length, books.every(({ payments }) => payments === 1)], [rows, true])
      })).pipe(Effect.provide(StripeSim.layer())), 120_000)
  }
})

describe("two processes on one data folder", () => {
  it.live("the second is told so and leaves; the first is unharmed", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* desk(stores[0]![1])
      at.write("bills.csv", csv(...tens(4)))
      yield* at.sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", nth: 2 }, action: { kind: "delay", at: "during", delayMs: 600_000 } })
      const first = yield* at.start(["run", "bills.csv", "--json"])
      yield* first.meanwhile(paidAtLeast(at.sim, 3))
      const others = yield* Effect.all([at.purser(["run", "bills.csv", "--json"]), at.purser(["status"])], { concurrency: 2 })
      for (const other of others) {
        assert.strictEqual(other.code, 1)
        assert.include(other.stderr, at.env["PURSER_DATA_DIR"]!)
        assert.include(other.stderr, "in use")
        assert.strictEqual(other.stdout, "")
      }
      yield* at.sim.faults.release
      const ended = yield* first.ended
      assert.deepStrictEqual([ended.code, ended.json?.["succeeded"]], [0, 4], ended.stderr)
      assert.strictEqual((yield* at.purser(["run", "bills.csv", "--json"])).json?.["alreadySettled"], 4)
      assert.deepStrictEqual((yield* at.paid).map(({ payments }) => payments), [1, 1, 1, 1])
    })).pipe(Effect.provide(StripeSim.layer())), 120_000)
})
