/** Pauses through the command, over several processes and one database; the simulator's books are the judge. */
import { assert, describe, it } from "@effect/vitest"
import { StripeSim } from "@purser/stripe-sim"
import { Effect } from "effect"
import { userInfo } from "node:os"
import { atDesk, csv, desk, type Desk, tens } from "../src/Desk.ts"
import { freePort, proxyTo } from "../src/Proxy.ts"
import { stores } from "../src/Store.ts"

const rows = 12
const quickly = { PURSER_PAUSE_POLL: "50 millis" }

const allPaid = Effect.fnUntraced(function*(at: Desk) {
  const books = yield* at.paid
  assert.deepStrictEqual([books.length, books.every(({ payments }) => payments === 1)], [rows, true])
})

describe("purser pause stripe", () => {
  it.live("holds a run and a worker of another process, until it is resumed", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      at.write("bills.csv", csv(...tens(rows)))
      const paused = yield* at.purser(["pause", "stripe", "--reason", "an incident", "--actor", "ops"])
      assert.strictEqual(paused.code, 0, paused.stderr)
      assert.match(paused.stdout, /charging is paused since \d{4}-.* by ops: an incident/)
      assert.match((yield* at.purser(["status"])).stdout, /charging is paused since .* by ops: an incident/)
      const endpoint = `tcp://127.0.0.1:${yield* freePort}`
      const worker = yield* at.start(["worker", "--endpoint", endpoint], quickly)
      yield* worker.says("by ops: an incident")
      const run = yield* at.start(["run", "bills.csv", "--json", "--workers", "0"], { ...quickly, PURSER_ENDPOINT: endpoint })
      yield* run.says("by ops: an incident")
      const swept = yield* at.start(["sweep"], quickly)
      yield* swept.says("by ops: an incident")
      assert.strictEqual(yield* at.calls, 0)
      const resumed = yield* at.purser(["resume", "stripe"])
      assert.strictEqual(resumed.stdout.trim(), "charging goes on")
      const ended = yield* run.ended
      assert.strictEqual(ended.code, 0, ended.stderr)
      assert.strictEqual(ended.json?.["succeeded"], rows)
      yield* allPaid(at)
      assert.strictEqual((yield* at.purser(["resume", "stripe"])).stdout.trim(), "charging was not paused")
    })), 240_000)

  it.live("reaches a run in its middle: what is under way ends, nothing more is sent, and it goes on", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      at.write("bills.csv", csv(...tens(rows)))
      // Two charges are held at Stripe in the middle of the run: the pause comes while they are under way.
      yield* at.sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", nth: 4, times: 2 }, action: { kind: "delay", at: "before", delayMs: 600_000 } })
      const run = yield* at.start(["run", "bills.csv", "--json", "--concurrency", "2"], quickly)
      const confirms = Effect.map(at.sim.requests, (all) => all.filter(({ path }) => path.endsWith("/confirm")).length)
      const reached = (count: number): Effect.Effect<void> =>
        Effect.flatMap(confirms, (now) => now >= count ? Effect.void : Effect.andThen(Effect.sleep(5), reached(count)))
      yield* run.meanwhile(reached(5))
      yield* at.purser(["pause", "stripe", "--reason", "an incident"])
      yield* run.says("waiting; `purser resume stripe` ends it")
      yield* at.sim.faults.release
      const paid: Effect.Effect<void> = Effect.flatMap(at.paid, (books) => books.length >= 5 ? Effect.void : Effect.andThen(Effect.sleep(5), paid))
      yield* run.meanwhile(paid)
      // Time for a call that must not come.
      yield* Effect.sleep(500)
      assert.strictEqual((yield* at.paid).length, 5)
      assert.strictEqual(yield* confirms, 5)
      yield* at.purser(["resume", "stripe"])
      const ended = yield* run.ended
      assert.strictEqual(ended.code, 0, ended.stderr)
      // Who did it is whoever was at the command, where they do not say another name.
      assert.include(ended.stderr, ` by ${userInfo().username}: an incident`)
      yield* allPaid(at)
    })), 240_000)

  for (const [name, store] of stores) {
    it.live(`run --paused plans and charges nothing, on ${name}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const at = yield* desk(store)
        at.write("bills.csv", csv(...tens(rows)))
        const first = yield* at.start(["run", "bills.csv", "--json", "--paused"], quickly)
        if (name === "pglite") {
          // Nobody else can open the folder to resume it: the command ends.
          const ended = yield* first.ended
          assert.strictEqual(ended.code, 2, ended.stderr)
          assert.include(ended.stderr, "Planned, and nothing charged.")
        } else yield* first.says("waiting; `purser resume stripe` ends it")
        assert.strictEqual(yield* at.calls, 0)
        assert.strictEqual((yield* at.purser(["resume", "stripe"])).code, 0)
        const ended = name === "pglite" ? yield* at.purser(["run", "bills.csv", "--json"]) : yield* first.ended
        assert.strictEqual(ended.code, 0, ended.stderr)
        assert.strictEqual(ended.json?.["succeeded"], rows)
        yield* allPaid(at)
      })).pipe(Effect.provide(StripeSim.layer())), 240_000)
  }
})

describe("an outage of Stripe", () => {
  it.live("pauses the workers of all processes, and one run ends well without another command", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      at.write("bills.csv", csv(...tens(rows)))
      const proxy = yield* proxyTo(at.sim.port)
      const env = { ...quickly, PURSER_STRIPE_URL: `http://127.0.0.1:${proxy.port}`, PURSER_OUTAGE_AFTER: "4", PURSER_OUTAGE_PROBE: "100 millis" }
      yield* at.sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", nth: 3 }, action: { kind: "delay", at: "after", delayMs: 600_000 } })
      const run = yield* at.start(["run", "bills.csv", "--json", "--concurrency", "2"], env)
      const paid: Effect.Effect<void> = Effect.flatMap(at.paid, (books) => books.length >= 3 ? Effect.void : Effect.andThen(Effect.sleep(5), paid))
      yield* run.meanwhile(paid)
      yield* proxy.cut
      yield* run.says("charging pauses until it does")
      const other = yield* at.start(["sweep"], env)
      yield* other.says("by an outage")
      yield* proxy.mend
      const ended = yield* run.ended
      assert.strictEqual(ended.code, 0, ended.stderr)
      assert.strictEqual(ended.json?.["unresolved"], 0)
      yield* allPaid(at)
      assert.strictEqual((yield* other.ended).code, 0)
    })), 240_000)
})
