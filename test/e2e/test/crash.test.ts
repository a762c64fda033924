/**
 * Real processes, killed with SIGKILL at every place of the protocol and started again by the same command. The
 * simulator lives in the test's process: its books outlive every crash. The short run takes the places on the two databases in turns.
 */
import { assert, describe, it } from "@effect/vitest"
import { faultPlaces } from "@purser/core"
import { StripeSim } from "@purser/stripe-sim"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { ofThisRun } from "../src/Long.ts"
import { purser } from "../src/Purser.ts"
import { stores, temporaryFolder } from "../src/Store.ts"

const rows = 12
const file = (declined: ReadonlySet<number>) =>
  [
    "customer_id,billing_period,amount,currency,stripe_customer_id,payment_method,item",
    ...Array.from({ length: rows }, (_, i) =>
      `c${i},2026-07,${10 + i}.00,USD,cus_${i},${declined.has(i) ? "pm_card_visa_chargeDeclined" : `pm_${i}`},base`)
  ].join("\n")

for (const [column, [name, store]] of stores.entries()) {
  describe(`kill -9 on ${name}`, () => {
    for (const place of ofThisRun(faultPlaces, column)) {
      it.live(`at ${place}, then the same command again: one payment per row`, () =>
        Effect.scoped(Effect.gen(function*() {
          const sim = yield* StripeSim
          const folder = yield* temporaryFolder
          const path = join(folder, "invoices.csv")
          // Room is given back only after a decline: that place needs some.
          const declined = new Set(place === "after-release" ? [0, 1, 2, 3, 4, 5, 6, 7] : [])
          writeFileSync(path, file(declined))
          const env = { ...yield* store, PURSER_STRIPE_URL: sim.url }
          const killed = yield* purser(["run", path, "--json", "--concurrency", "3"], { ...env, PURSER_FAULT: `${place}:5` })
          assert.strictEqual(killed.signal, "SIGKILL", killed.stderr)
          const finished = yield* purser(["run", path, "--json"], env)
          assert.strictEqual(finished.code, declined.size === 0 ? 0 : 2, finished.stderr)
          const books = (yield* sim.books).filter((entry) => entry.payments > 0)
          assert.strictEqual(books.length, rows - declined.size)
          assert.isTrue(books.every((entry) => entry.payments === 1))
          assert.strictEqual(finished.json?.["succeeded"], rows - declined.size)
          assert.strictEqual(finished.json?.["declined"], declined.size)
          assert.strictEqual(finished.json?.["unresolved"], 0)
          const paid = books.reduce((sum, entry) => sum + entry.amountMinor, 0)
          assert.deepStrictEqual(finished.json?.["paidMinor"], { usd: paid })
        })).pipe(Effect.provide(StripeSim.layer())), 120_000)
    }
  })
}
