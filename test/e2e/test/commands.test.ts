/** The commands beside `run`, and what people read when something is wrong. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { atDesk, csv, inPairs, tens } from "../src/Desk.ts"

const live = (title: string, test: Parameters<typeof atDesk>[0]) => it.live(title, () => atDesk(test), 120_000)

describe("purser", () => {
  live("refuses what it cannot do with status 1 and a sentence, and sends nothing", (at) =>
    Effect.gen(function*() {
      at.write("bills.csv", csv(...tens(1)))
      const secret = "sk_live_51NeverToBeSeenAgain"
      const refusals: ReadonlyArray<readonly [text: string, args: ReadonlyArray<string>, env?: Record<string, string>]> = [
        ["Unrecognized flag: --bogus", ["run", "bills.csv", "--bogus"]],
        ["Unknown subcommand \"bil\"", ["bil"]],
        ["missing.csv: no such file", ["run", "missing.csv"]],
        ["PURSER_STRIPE_KEY is not set", ["run", "bills.csv"], { PURSER_STRIPE_KEY: "" }],
        ["unrestricted live key (sk_live_…)", ["run", "bills.csv"], { PURSER_STRIPE_KEY: secret }],
        ["memory does not", ["run", "bills.csv", "--workers", "0", "--transport", "memory"]],
        ["--map kunde: expected THEIRS=OURS", ["run", "bills.csv", "--map", "kunde"]],
        ["could mean", ["run", "two.csv", "--expected-total", "20.00"]],
        ["speaks of no row", ["run", "two.csv", "--expected-total", "jpy=20"]],
        ["no --expected-total is given for 2026-07 eur", ["run", "two.csv", "--expected-total", "usd=10.00"]],
        ["2026-13", ["key", "acme", "2026-13"]]
      ]
      at.write("two.csv", csv(...tens(1), "d,2026-07,10.00,EUR,cus_d,pm_d,"))
      const ended = yield* inPairs(refusals.map(([, args, env]) => at.purser(args, env)))
      for (const [index, [text]] of refusals.entries()) {
        const { code, signal, stderr, stdout } = ended[index]!
        assert.deepStrictEqual([code, signal], [1, null], text)
        assert.include(stderr, text)
        assert.notInclude(stderr, "    at ", "a stack trace is not for people")
        assert.notInclude(stdout + stderr, secret.slice(8))
      }
      assert.strictEqual(yield* at.calls, 0)
    }))

  live("prints the key of an identity, in whatever spelling of the period", (at) =>
    Effect.gen(function*() {
      const ended = yield* inPairs([
        at.purser(["key", "cust_123", "2026-Q3"]), at.purser(["key", "cust_123", "Q3-2026", "--item", "seat-1"])
      ])
      const [vector, item] = ended.map(({ stdout }) => stdout.trim())
      assert.strictEqual(vector, createHash("sha256").update("cust_123:Q3-2026:zmq-billing").digest("hex").slice(0, 32))
      assert.strictEqual(item, createHash("sha256").update("cust_123:Q3-2026:zmq-billing:seat-1").digest("hex").slice(0, 32))
    }))

  live("a cap is opened, shown, used, raised and closed by hand; a closed one refuses the next file", (at) =>
    Effect.gen(function*() {
      const scope = ["2026-07", "--currency", "usd"]
      at.write("july.csv", csv(...tens(2)))
      at.write("more.csv", csv("late,2026-07,10.00,USD,cus_late,pm_late,"))
      const opened = yield* at.purser(["cap", "open", ...scope, "--expected-total", "20.00", "--headroom", "1.00"])
      assert.strictEqual(opened.code, 0, opened.stderr)
      const other = yield* at.purser(["cap", "open", ...scope, "--expected-total", "30.00", "--headroom", "1.00"])
      assert.deepStrictEqual([other.code, other.stdout], [1, ""])
      assert.include(other.stderr, "is open at 20.00")
      assert.include(other.stderr, "purser cap raise 2026-07 --currency usd --expected-total")
      const run = yield* at.purser(["run", "july.csv", "--json"])
      assert.deepStrictEqual([run.code, run.json?.["capMinor"]], [0, { usd: 2000 }], run.stderr)
      const calls = yield* at.calls
      const full = yield* at.purser(["run", "more.csv", "--json"])
      assert.deepStrictEqual([full.code, full.stdout], [1, ""])
      assert.include(full.stderr, "the cap is 20.00, of which 20.00 are taken")
      yield* at.purser(["cap", "raise", ...scope, "--expected-total", "30.00", "--headroom", "1.00", "--reason", "a late customer"])
      yield* at.purser(["cap", "close", ...scope, "--reason", "the month is over"])
      const shown = yield* at.purser(["cap", "show", "2026-07", "--json"])
      assert.deepStrictEqual(JSON.parse(shown.stdout), [{
        namespace: "zmq-billing", billingPeriod: "2026-07", currency: "usd", expectedMinor: 3000, headroomPercent: 100, capMinor: 3000,
        reservedMinor: 2000, reservations: 2, closed: true
      }])
      const closed = yield* at.purser(["run", "more.csv", "--json"])
      assert.deepStrictEqual([closed.code, closed.stdout], [1, ""])
      assert.include(closed.stderr, "the cap for 2026-07 usd is closed")
      assert.strictEqual(yield* at.calls, calls)
      const again = yield* at.purser(["run", "july.csv", "--json"])
      assert.deepStrictEqual([again.code, again.json?.["alreadySettled"]], [0, 2], again.stderr)
      assert.strictEqual(yield* at.calls, calls)
    }))

  live("the simulator stands alone, takes a run, shows its books and ends with 0 when it is stopped", (at) =>
    Effect.gen(function*() {
      at.write("bills.csv", csv(...tens(1)))
      const sim = yield* at.start(["sim", "--port", "0"])
      const said = yield* sim.says("/_sim/books")
      const url = /http:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0]
      assert.isDefined(url)
      const ended = yield* at.purser(["run", "bills.csv", "--json"], { PURSER_STRIPE_URL: url! })
      assert.strictEqual(ended.code, 0, ended.stderr)
      const books = yield* Effect.promise(() => fetch(`${url}/_sim/books`).then((answer) => answer.json()))
      assert.deepStrictEqual(books, [{ customer: "c0", billingPeriod: "2026-07", item: "base", payments: 1, amountMinor: 1000, currency: "usd" }])
      yield* sim.kill("SIGTERM")
      assert.deepStrictEqual([(yield* sim.ended).code, (yield* sim.ended).signal], [0, null])
    }))
})
