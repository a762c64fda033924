/** Runs against a Stripe that enforces its rates: nothing is lost and nothing is paid twice, whatever the client believes. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { atDesk, csv, tens } from "../src/Desk.ts"

const rows = 60
const believed = [
  ["a sandbox, with its rates", "sandbox", { PURSER_STRIPE_RATE: "25", PURSER_STRIPE_ENDPOINT_RATE: "25" }],
  ["a live account, with its rates", "live", { PURSER_STRIPE_RATE: "100", PURSER_STRIPE_ENDPOINT_RATE: "25" }],
  ["a sandbox, with four times its rate", "sandbox", { PURSER_STRIPE_RATE: "100", PURSER_STRIPE_ENDPOINT_RATE: "100" }],
  ["a sandbox, with no limit at all", "sandbox", { PURSER_STRIPE_RATE: "off", PURSER_STRIPE_ENDPOINT_RATE: "off" }]
] as const

describe("a run under enforced rates", () => {
  for (const [title, enforced, env] of believed) {
    it.live(title, () =>
      atDesk(Effect.fnUntraced(function*(at) {
        yield* at.sim.setRateLimits(enforced)
        at.write("bills.csv", csv(...tens(rows)))
        const ended = yield* at.purser(["run", "bills.csv", "--json"], env)
        assert.strictEqual(ended.code, 0, ended.stderr)
        assert.strictEqual(ended.json?.["succeeded"], rows)
        const books = yield* at.paid
        assert.deepStrictEqual([books.length, books.every(({ payments }) => payments === 1)], [rows, true])
        const refused = (yield* at.sim.requests).filter(({ status }) => status === 429).length
        // Who goes faster than allowed is told so; whoever keeps to the rates need not be.
        if (env.PURSER_STRIPE_RATE === "off") assert.isAbove(refused, 0)
      })), 120_000)
  }
})
