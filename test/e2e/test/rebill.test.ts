/** Refund, then bill again, through the command. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { atDesk, caseFile, csv, parseCsv } from "../src/Desk.ts"

it.live("E11: a rerun is a no-op; billing anew is an act, once, with a key of its own, linked to the first", () =>
  atDesk((desk) =>
    Effect.gen(function*() {
      const at = ["acme", "2026-07", "--item", "base"]
      const [right] = parseCsv(new TextDecoder().decode(caseFile("E11-rebill.csv")))
      const amount = right!["amount"]!
      const rebill = (...more: ReadonlyArray<string>) => desk.purser(["rebill", ...at, "--reason", "right price", "--json", ...more])
      const run = yield* desk.purser(["run", desk.write("bill.csv", caseFile("E11-refund.csv")), "--expected-total", "100.00", "--yes"])
      assert.strictEqual(run.code, 0, run.stderr)
      const early = yield* rebill("--amount", amount)
      assert.strictEqual(early.code, 1)
      assert.include(early.stderr, "0.00 usd of 30.00 usd were given back")
      for (const _ of ["once", "and again"]) assert.strictEqual((yield* desk.purser(["refund", ...at, "--reason", "wrong price"])).code, 0)
      const calls = yield* desk.calls
      assert.strictEqual((yield* desk.purser(["run", desk.pathOf("bill.csv"), "--yes"])).code, 0)
      // A file with the right price is no act: the row has its terms, refunded or not.
      const plain = yield* desk.purser(["run", desk.write("rebill.csv", caseFile("E11-rebill.csv")), "--yes", "--json"])
      assert.deepStrictEqual([plain.code, plain.json?.["conflict"], plain.json?.["succeeded"]], [2, 1, 0], plain.stderr)
      assert.strictEqual(yield* desk.calls, calls)

      const first = yield* rebill("--amount", amount)
      assert.strictEqual(first.code, 0, first.stderr)
      assert.deepInclude(first.json, { _tag: "Succeeded", amountReceivedMinor: 2800, alreadySettled: false, revision: 1 })
      const again = yield* rebill("--amount", amount)
      assert.deepInclude(again.json, { _tag: "Succeeded", alreadySettled: true, chargeKey: first.json!["chargeKey"], revision: 1 })
      const other = yield* rebill("--amount", "27.00")
      assert.strictEqual(other.code, 1, other.stderr)

      const key = yield* desk.purser(["key", ...at])
      assert.strictEqual(first.json!["revises"], key.stdout.trim())
      assert.notStrictEqual(first.json!["chargeKey"], key.stdout.trim())
      const shown = yield* desk.purser(["show", ...at, "--json"])
      assert.deepInclude(shown.json, { state: "succeeded", revisedBy: first.json!["chargeKey"] })
      const revision = yield* desk.purser(["show", ...at, "--revision", "1", "--json"])
      assert.deepInclude(revision.json, { state: "succeeded", revises: key.stdout.trim() })
      assert.include((yield* desk.purser(["status", "2026-07"])).stdout, "given back")
      const books = (yield* desk.sim.books).filter(({ customer }) => customer === "acme")
      assert.strictEqual(books.reduce((sum, entry) => sum + entry.payments, 0), 2)
      assert.strictEqual(books.reduce((sum, entry) => sum + (entry.refunds ?? 0), 0), 1)
      assert.strictEqual(books.reduce((sum, entry) => sum + entry.amountMinor - (entry.refundedMinor ?? 0), 0), 2800)
    })), 240_000)

it.live("a revision that the cap rejected says what to do, and is paid by that", () =>
  atDesk((desk) =>
    Effect.gen(function*() {
      const at = ["acme", "2026-07", "--item", "base"]
      const run = yield* desk.purser(["run", desk.write("bill.csv", csv("acme,2026-07,30.00,USD,cus_T001,pm_T001,base")), "--expected-total", "30.00", "--yes"])
      assert.strictEqual(run.code, 0, run.stderr)
      assert.strictEqual((yield* desk.purser(["refund", ...at, "--reason", "wrong price"])).code, 0)
      const rejected = yield* desk.purser(["rebill", ...at, "--amount", "28.00", "--reason", "right price"])
      assert.strictEqual(rejected.code, 2, rejected.stderr)
      assert.include(rejected.stderr, "purser cap raise 2026-07 --currency usd, then purser retry \"acme\" 2026-07 --item \"base\" --revision 1")
      const raised = yield* desk.purser(["cap", "raise", "2026-07", "--currency", "usd", "--expected-total", "60.00", "--reason", "billed anew"])
      assert.strictEqual(raised.code, 0, raised.stderr)
      const paid = yield* desk.purser(["retry", ...at, "--revision", "1", "--reason", "the cap was raised"])
      assert.strictEqual(paid.code, 0, paid.stderr)
      const books = yield* desk.sim.books
      assert.strictEqual(books.reduce((sum, entry) => sum + entry.amountMinor - (entry.refundedMinor ?? 0), 0), 2800)
    })), 240_000)
