/** Customers who are deleted or were never there, by each gateway: their rows are refused with the reason, the others are paid. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { atDesk, csv } from "../src/Desk.ts"

describe("deleted and unknown customers", () => {
  for (const gateway of ["payment_intents", "charges", "invoices"] as const) {
    it.live(`are refused with ${gateway}`, () =>
      atDesk(Effect.fnUntraced(function*(at) {
        at.write("bills.csv", csv(
          "c1,2026-07,10.00,USD,cus_T001,pm_1,base",
          "c2,2026-07,10.00,USD,cus_TDELETED,pm_2,base",
          "c3,2026-07,10.00,USD,cus_T003,,base",
          "c4,2026-07,10.00,USD,cus_TNONE,pm_4,base",
          "c5,2026-07,10.00,USD,cus_TNONE2,,base"
        ))
        const ended = yield* at.purser(["run", "bills.csv", "--json", "--report", at.pathOf("report.csv")], { PURSER_STRIPE_GATEWAY: gateway, PURSER_RUN_PATIENCE: "10 seconds" })
        assert.strictEqual(ended.code, 2, ended.stderr)
        assert.deepStrictEqual([ended.json?.["succeeded"], ended.json?.["rejected"], ended.json?.["unresolved"]], [2, 3, 0])
        const books = (yield* at.sim.books).filter(({ payments }) => payments > 0)
        assert.deepStrictEqual(books.map(({ customer, payments }) => [customer, payments]).toSorted(), [["c1", 1], ["c3", 1]])
      })), 240_000)
  }
})
