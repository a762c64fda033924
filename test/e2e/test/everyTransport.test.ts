/** The transport is a line of configuration: the same bills over each of them come to the same books and the same report. */
import { assert, describe, it } from "@effect/vitest"
import { transportNames } from "@purser/purser"
import { Effect } from "effect"
import { atDesk, csv, inPairs, tens } from "../src/Desk.ts"

const bills = csv(
  ...tens(12),
  "refused,2026-07,25.00,USD,cus_refused,pm_card_chargeDeclined,base",
  "seats,2026-07,30.00,EUR,cus_seats,pm_seats,seat-1",
  "seats,2026-07,30.00,EUR,cus_seats,pm_seats,seat-2"
)

const billed = (settings: Readonly<Record<string, string>>, args: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    let result: unknown
    yield* atDesk((at) =>
      Effect.gen(function*() {
        at.write("bills.csv", bills)
        const run = yield* at.purser(["run", "bills.csv", "--json", "--report", "report.csv", ...args], settings)
        const { declined, paidMinor, succeeded, unresolved } = run.json ?? {}
        const books = (yield* at.paid).map(({ amountMinor, billingPeriod, currency, customer, item, payments }) => [customer, billingPeriod, item, currency, amountMinor, payments].join(" ")).sort()
        const report = at.report("report.csv").map((row) => [row["line"], row["customer_id"], row["item"], row["state"]].join(" "))
        result = { code: run.code, declined, paidMinor, succeeded, unresolved, books, report, stderr: run.code === 2 ? "" : run.stderr }
      }))
    return result
  })

const live = (title: string, test: Parameters<typeof atDesk>[0]) => it.live(title, () => atDesk(test), 120_000)

describe("every transport", () => {
  it.live("bills the same file alike, chosen by flag or by environment", () =>
    Effect.gen(function*() {
      const expected = yield* billed({}, ["--transport", "memory"])
      assert.deepInclude(expected as object, { code: 2, succeeded: 14, declined: 1, unresolved: 0, paidMinor: { usd: 12_000, eur: 6_000 } })
      assert.strictEqual((expected as { readonly books: ReadonlyArray<string> }).books.length, 14)
      for (const name of transportNames.filter((transport) => transport !== "memory")) {
        assert.deepStrictEqual(yield* billed({ PURSER_TRANSPORT: name }, []), expected, name)
      }
      assert.deepStrictEqual(yield* billed({ PURSER_TRANSPORT: "memory" }, ["--transport", "router-dealer"]), expected, "the flag goes first")
    }), 240_000)

  live("is chosen by a file of settings too; the environment goes before it, and a wrong line is named", (at) =>
    Effect.gen(function*() {
      at.write("bills.csv", csv(...tens(1)))
      at.write("purser.env", "# ours\nPURSER_TRANSPORT=carrier-pigeon\nPURSER_REQUEST_TIMEOUT=\"20 seconds\"\n")
      at.write("wrong.env", "PURSER_TRANSPORT=memory\nSTRIPE_KEY=sk_live_secret\n")
      const [named, before, wrong, missing] = yield* inPairs([
        at.purser(["run", "bills.csv"], { PURSER_CONFIG: "purser.env" }),
        at.purser(["run", "bills.csv", "--json"], { PURSER_CONFIG: "purser.env", PURSER_TRANSPORT: "router-dealer" }),
        at.purser(["status"], { PURSER_CONFIG: "wrong.env" }),
        at.purser(["status"], { PURSER_CONFIG: "missing.env" })
      ])
      assert.deepStrictEqual([named?.code, named?.stderr.includes("\"push-pull\"")], [1, true], named?.stderr)
      assert.deepStrictEqual([before?.code, before?.json?.["succeeded"]], [0, 1], before?.stderr)
      assert.deepStrictEqual([wrong?.code, wrong?.stderr.includes("wrong.env, line 2"), wrong?.stderr.includes("sk_live")], [1, true, false], wrong?.stderr)
      assert.deepStrictEqual([missing?.code, missing?.stderr.includes("no such file")], [1, true], missing?.stderr)
    }))
})
