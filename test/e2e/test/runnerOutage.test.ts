/** The database goes away under a runner in mid-run and comes back: the run goes on by itself, and the books count one payment each. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { atDesk, csv, paidAtLeast, tens } from "../src/Desk.ts"
import { proxyTo } from "../src/Proxy.ts"
import { exactlyOnce, once, startArgs, until } from "../src/RunnerWorld.ts"

it.live("a run outlives an outage of its database", () =>
  atDesk((desk) =>
    Effect.gen(function*() {
      const rows = 120
      const file = desk.write("july.csv", csv(...tens(rows)))
      yield* desk.sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", times: "always" }, action: { kind: "delay", at: "during", delayMs: 30 } })
      const direct = new URL(desk.env["PURSER_DATABASE_URL"]!)
      const proxy = yield* proxyTo(Number(direct.port))
      const through = new URL(direct)
      through.port = String(proxy.port)
      const runner = yield* desk.start(["runner", "--transport", "memory"], { ...once, PURSER_DATABASE_URL: through.href })
      yield* runner.says("workers")
      yield* desk.purser([...startArgs("july", file), "--concurrency", "2"], once)
      yield* paidAtLeast(desk.sim, 10)
      yield* proxy.cut
      yield* proxy.turnedAway(3)
      yield* proxy.mend
      const end = yield* runner.meanwhile(until(desk, "july", ({ state }) => state === "finished" || state === "failed").pipe(Effect.orDie))
      assert.deepStrictEqual([end.state, end.counted.map((total) => [total.state, total.rows])], ["finished", [["succeeded", rows]]])
      yield* exactlyOnce(desk, rows)
    })), 120_000)
