/** Refunds through the command, as an operator gives them, counted in the simulator's books. */
import { assert, it } from "@effect/vitest"
import { refundFaultPlaces } from "@purser/core"
import { Effect } from "effect"
import { atDesk, csv, type Desk } from "../src/Desk.ts"

const paidRow = "acme,2026-07,30.00,USD,cus_T001,pm_T001,base"
const charged = Effect.fnUntraced(function*(desk: Desk, total = "30.00", row = paidRow) {
  const ended = yield* desk.purser(["run", desk.write("bill.csv", csv(row)), "--expected-total", total, "--yes"])
  assert.strictEqual(ended.code, 0, ended.stderr)
})
const refund = (desk: Desk, ...more: ReadonlyArray<string>) =>
  desk.purser(["refund", "acme", "2026-07", "--item", "base", "--reason", "test", "--json", ...more])
const book = (desk: Desk) => Effect.map(desk.sim.books, (books) => books.find(({ customer }) => customer === "acme"))

it.live("a refund is made once, however often it is asked for, and a plain rerun charges nothing", () =>
  atDesk((desk) =>
    Effect.gen(function*() {
      yield* charged(desk)
      const first = yield* refund(desk)
      assert.strictEqual(first.code, 0, first.stderr)
      assert.deepInclude(first.json, { _tag: "Refunded", amountMinor: 3000, alreadySettled: false })
      const calls = yield* desk.calls
      const again = yield* refund(desk)
      assert.strictEqual(again.code, 0, again.stderr)
      assert.deepInclude(again.json, { _tag: "Refunded", amountMinor: 3000, alreadySettled: true })
      const rerun = yield* desk.purser(["run", desk.pathOf("bill.csv"), "--yes"])
      assert.strictEqual(rerun.code, 0, rerun.stderr)
      assert.strictEqual(yield* desk.calls, calls)
      assert.deepInclude(yield* book(desk), { payments: 1, refunds: 1, refundedMinor: 3000 })
    })), 120_000)

it.live("equal parts under ids of their own are refunds of their own, and never more than was paid goes back", () =>
  atDesk((desk) =>
    Effect.gen(function*() {
      yield* charged(desk)
      for (const id of ["1", "2", "2"]) {
        const ended = yield* refund(desk, "--amount", "10.00", "--id", id)
        assert.strictEqual(ended.code, 0, ended.stderr)
      }
      assert.deepInclude(yield* book(desk), { refunds: 2, refundedMinor: 2000 })
      const other = yield* refund(desk, "--amount", "9.00", "--id", "2")
      assert.strictEqual(other.code, 1)
      assert.include(other.stderr, "over 10.00 usd")
      const tooMuch = yield* refund(desk, "--amount", "10.01", "--id", "3")
      assert.strictEqual(tooMuch.code, 1)
      assert.include(tooMuch.stderr, "10.01 usd is more than is left to refund: 10.00 usd of 30.00 usd")
      const rest = yield* refund(desk, "--id", "rest")
      assert.deepInclude(rest.json, { _tag: "Refunded", amountMinor: 1000 })
      const nothing = yield* refund(desk, "--id", "more")
      assert.strictEqual(nothing.code, 1)
      assert.include(nothing.stderr, "nothing is left to refund of 30.00 usd")
      assert.deepInclude(yield* book(desk), { refunds: 3, refundedMinor: 3000 })
    })), 120_000)

it.live("a refund gives no room back under the cap", () =>
  atDesk((desk) =>
    Effect.gen(function*() {
      yield* charged(desk)
      assert.strictEqual((yield* refund(desk)).code, 0)
      const caps = yield* desk.purser(["cap", "show", "2026-07", "--json"])
      assert.deepInclude(JSON.parse(caps.stdout)[0], { capMinor: 3300, reservedMinor: 3000 })
      const next = yield* desk.purser(["run", desk.write("next.csv", csv("beta,2026-07,10.00,USD,cus_T002,pm_T002,base")), "--yes"])
      assert.notStrictEqual(next.code, 0)
      assert.strictEqual((yield* desk.paid).length, 1)
    })), 120_000)

it.live("what was refunded by others counts as done", () =>
  atDesk((desk) =>
    Effect.gen(function*() {
      yield* charged(desk)
      const intent = (yield* desk.sim.requests).flatMap(({ path }) => /payment_intents\/(pi_\w+)\/confirm/.exec(path)?.[1] ?? [])[0]!
      const made = yield* Effect.promise(() =>
        fetch(`${desk.sim.url}/v1/refunds`, { method: "POST", headers: { Authorization: "Bearer sk_test_dashboard" }, body: new URLSearchParams({ payment_intent: intent }) }))
      assert.strictEqual(made.status, 200)
      const ended = yield* refund(desk)
      assert.strictEqual(ended.code, 0, ended.stderr)
      assert.deepInclude(ended.json, { _tag: "AlreadyRefunded" })
      assert.deepInclude(yield* book(desk), { refunds: 1, refundedMinor: 3000 })
    })), 120_000)

it.live("nothing goes back of a charge that is not paid", () =>
  atDesk((desk) =>
    Effect.gen(function*() {
      yield* desk.purser(["run", desk.write("bill.csv", csv("acme,2026-07,30.00,USD,cus_T001,pm_card_chargeDeclined,base")), "--expected-total", "30.00", "--yes"])
      const ended = yield* refund(desk)
      assert.strictEqual(ended.code, 1)
      assert.include(ended.stderr, "the charge is declined: only a paid one can be refunded")
      const none = yield* desk.purser(["refund", "nobody", "2026-07", "--reason", "test"])
      assert.strictEqual(none.code, 1)
      assert.include(none.stderr, "the ledger holds no such charge")
    })), 120_000)

it.live("kill -9 at every step of a refund, then purser sweep: one refund", () =>
  atDesk((desk) =>
    Effect.gen(function*() {
      const rows = refundFaultPlaces.map((place) => `${place},2026-07,30.00,USD,cus_${place},pm_T001,base`)
      const ended = yield* desk.purser(["run", desk.write("bill.csv", csv(...rows)), "--expected-total", "120.00", "--yes"])
      assert.strictEqual(ended.code, 0, ended.stderr)
      for (const place of refundFaultPlaces) {
        const killed = yield* desk.purser(["refund", place, "2026-07", "--item", "base", "--amount", "10.00", "--reason", "test"], { PURSER_FAULT: `${place}:1` })
        assert.strictEqual(killed.signal, "SIGKILL", killed.stderr)
      }
      const swept = yield* Effect.repeat(desk.purser(["sweep", "--json"]), {
        until: () => Effect.map(desk.sim.books, (books) => books.filter(({ refunds }) => refunds !== undefined).length === rows.length)
      })
      assert.strictEqual(swept.code, 0, swept.stderr)
      for (const place of refundFaultPlaces) {
        // The sweep has settled it, or it is taken up here when its lease has just run out: the books count.
        const again = yield* desk.purser(["refund", place, "2026-07", "--item", "base", "--amount", "10.00", "--reason", "test", "--json"])
        assert.deepInclude(again.json, { _tag: "Refunded" }, again.stderr)
      }
      for (const entry of yield* desk.sim.books) assert.deepInclude(entry, { refunds: 1, refundedMinor: 1000 })
    })), 240_000)
