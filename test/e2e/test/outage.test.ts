/** What a run needs goes away in its middle and comes back: nothing is lost, nothing is paid twice. */
import { assert, describe, it } from "@effect/vitest"
import { StripeSim } from "@purser/stripe-sim"
import { Effect } from "effect"
import { csv, type Desk, desk, paidAtLeast, tens } from "../src/Desk.ts"
import type { Running } from "../src/Purser.ts"
import { proxyTo } from "../src/Proxy.ts"
import { stores } from "../src/Store.ts"

const rows = 12
const args = ["run", "bills.csv", "--json", "--concurrency", "2"]

/** Waits until the simulator has seen this many requests of a kind. */
const arrived = (at: Desk, path: RegExp, count: number): Effect.Effect<void> =>
  Effect.flatMap(at.sim.requests, (requests) =>
    requests.filter((entry) => entry.method === "POST" && path.test(entry.path)).length >= count
      ? Effect.void
      : Effect.andThen(Effect.sleep(5), arrived(at, path, count)))

/** The run ends, if need be by the same command once more, with every row paid once. */
const finishes = Effect.fnUntraced(function*(at: Desk, running: Running, env: Readonly<Record<string, string>>) {
  const first = yield* running.ended
  assert.include([0, 2], first.code, first.stderr)
  const last = first.code === 0 ? first : yield* at.purser(args, env)
  assert.strictEqual(last.code, 0, `${first.stderr}\n${last.stderr}`)
  assert.deepStrictEqual([last.json?.["succeeded"], last.json?.["paidMinor"]], [rows, { usd: rows * 1000 }])
  const books = yield* at.paid
  assert.deepStrictEqual([books.length, books.every(({ payments }) => payments === 1)], [rows, true])
})

describe("a run goes on", () => {
  it.live("when the database was away before claims and attaches, and again after money had moved", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* desk()
      at.write("bills.csv", csv(...tens(rows)))
      const url = new URL(at.env["PURSER_DATABASE_URL"]!)
      const proxy = yield* proxyTo(Number(url.port))
      url.hostname = "127.0.0.1"
      url.port = String(proxy.port)
      const env = { PURSER_DATABASE_URL: url.href }
      yield* at.sim.faults.add(
        { match: { method: "POST", path: "/v1/payment_intents", times: 2 }, action: { kind: "delay", at: "before", delayMs: 600_000 } },
        { match: { path: "/v1/payment_intents/*/confirm", times: 2 }, action: { kind: "delay", at: "after", delayMs: 600_000 } }
      )
      const running = yield* at.start(args, env)
      const away = Effect.gen(function*() {
        yield* proxy.cut
        yield* at.sim.faults.release
        // Long enough for every step's patience to end, and for the run to miss its own book.
        yield* running.meanwhile(proxy.turnedAway(25))
        yield* proxy.mend
      })
      // Two charges are claimed and wait for their objects; nobody has claimed the others.
      yield* running.meanwhile(arrived(at, /payment_intents$/, 2))
      yield* away
      // Two are paid, and nobody has been told.
      yield* running.meanwhile(paidAtLeast(at.sim, 2))
      yield* away
      yield* finishes(at, running, env)
    })).pipe(Effect.provide(StripeSim.layer())), 120_000)

  for (const [name, store] of stores) {
    it.live(`when Stripe was away in its middle, on ${name}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const at = yield* desk(store)
        at.write("bills.csv", csv(...tens(rows)))
        const proxy = yield* proxyTo(at.sim.port)
        const env = { PURSER_STRIPE_URL: `http://127.0.0.1:${proxy.port}` }
        yield* at.sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", nth: 3, times: 2 }, action: { kind: "delay", at: "after", delayMs: 600_000 } })
        const running = yield* at.start(args, env)
        // The fourth payment's answer is still on its way: its connection goes, and so does everything after it.
        yield* running.meanwhile(paidAtLeast(at.sim, 4))
        yield* proxy.cut
        yield* running.meanwhile(proxy.turnedAway(10))
        yield* proxy.mend
        yield* finishes(at, running, env)
      })).pipe(Effect.provide(StripeSim.layer())), 120_000)
  }
})
