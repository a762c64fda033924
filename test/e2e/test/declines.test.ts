/** Declines through the command: what is asked again, by whom, with what, and how often Stripe was asked. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { atDesk, caseFile, csv, type Desk } from "../src/Desk.ts"

const row = (customer: string, method: string) => `${customer},2026-07,10.00,USD,cus_${customer},${method},base`
const bill = (desk: Desk, rows: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) =>
  desk.purser(["run", desk.write("bill.csv", csv(...rows)), "--expected-total", "100.00", "--yes", "--json"], env)
const confirms = (desk: Desk) => Effect.map(desk.sim.requests, (all) => all.filter(({ path }) => path.endsWith("/confirm")))
const show = (desk: Desk, customer: string, ...more: ReadonlyArray<string>) =>
  Effect.map(desk.purser(["show", customer, "2026-07", "--item", "base", "--json", ...more]), ({ json, stderr }) => {
    assert.isDefined(json, stderr)
    return json!
  })

it.live("E5: hard and soft declines, one call each; a person's retry with a good card pays with a new key on the same object", () =>
  atDesk((desk) =>
    Effect.gen(function*() {
      const run = yield* desk.purser(["run", desk.write("bill.csv", caseFile("E5-declines.csv")), "--expected-total", "100.00", "--yes", "--json"])
      assert.deepInclude(run.json, { succeeded: 1, declined: 3 })
      assert.strictEqual((yield* confirms(desk)).length, 4)
      assert.deepInclude(yield* show(desk, "a"), { state: "declined", nextAttemptAtMs: null, decline: { kind: "hard", remedy: "new_method" } })
      const soft = yield* show(desk, "b")
      assert.deepInclude(soft, { state: "declined", decline: { kind: "soft", remedy: "wait" } })
      assert.isNumber(soft["nextAttemptAtMs"])
      // Neither a rerun nor policy touches the hard one; the soft ones are not due yet.
      yield* desk.purser(["run", desk.pathOf("bill.csv"), "--yes"])
      const due = yield* desk.purser(["retry", "--due", "--json"])
      assert.deepInclude(due.json, { due: 0 })
      assert.strictEqual((yield* confirms(desk)).length, 4)

      const retry = desk.purser(["retry", "a", "2026-07", "--item", "base", "--payment-method", "pm_card_visa", "--reason", "new card", "--json"])
      // A closed cap refuses the attempt, not the charge; opening it again is an act of its own, with a reason.
      const cap = ["2026-07", "--currency", "usd"]
      assert.strictEqual((yield* desk.purser(["cap", "close", ...cap])).code, 0)
      const noRoom = yield* retry
      assert.deepStrictEqual([noRoom.code, /attempt 2 is asked for.*[\s\S]*is closed\. Nobody was asked: the charge stays declined at attempt 1; .*purser cap reopen/.test(noRoom.stderr)], [1, true], noRoom.stderr)
      assert.deepInclude(yield* show(desk, "a"), { state: "declined", attempt: 1, chosenMethod: null })
      assert.strictEqual((yield* desk.purser(["cap", "reopen", ...cap])).code, 1)
      const reopened = yield* desk.purser(["cap", "reopen", ...cap, "--reason", "new card"])
      assert.deepStrictEqual([reopened.code, reopened.stdout.includes("closed")], [0, false], reopened.stderr)
      const retried = yield* retry
      assert.strictEqual(retried.code, 0, retried.stderr)
      const asked = (yield* confirms(desk)).filter(({ path }) => path.includes(String(retried.json!["paymentIntentId"])))
      assert.strictEqual(asked.length, 2)
      assert.strictEqual(new Set(asked.map(({ idempotencyKey }) => idempotencyKey)).size, 2)
      assert.deepInclude(yield* show(desk, "a"), { state: "succeeded", attempt: 2, chosenMethod: "pm_card_visa" })
      assert.strictEqual((yield* desk.paid).length, 2)
      const caps = yield* desk.purser(["cap", "show", "2026-07", "--json"])
      assert.deepInclude(JSON.parse(caps.stdout)[0], { reservedMinor: 2000 })
    })), 240_000)

it.live("the issuer's advice decides, as Stripe tells it: the same code is asked again, or left to a person", () =>
  atDesk((desk) =>
    Effect.gen(function*() {
      const waits = { PURSER_DUNNING_WAITS: "1 second" }
      const rows = [
        row("later", "pm_card_chargeDeclinedAdviceTryAgainLater"), row("never", "pm_card_chargeDeclinedAdviceDoNotTryAgain"),
        row("data", "pm_card_chargeDeclinedInsufficientFundsAdviceConfirmCardData"), row("lost", "pm_card_chargeDeclinedLostCardAdviceTryAgainLater")
      ]
      assert.deepInclude((yield* bill(desk, rows, waits)).json, { succeeded: 0, declined: 4 })
      assert.deepInclude(yield* show(desk, "later"), { state: "declined", decline: { kind: "soft", remedy: "wait" } })
      const hard: ReadonlyArray<string> = ["never", "data", "lost"]
      const kinds = yield* Effect.forEach(hard, (customer) =>
        Effect.map(show(desk, customer), ({ decline, nextAttemptAtMs, outcome }) =>
          [(decline as { readonly kind: string }).kind, nextAttemptAtMs, (outcome as { readonly adviceCode: string }).adviceCode]))
      assert.deepStrictEqual(kinds, [["hard", null, "do_not_try_again"], ["hard", null, "confirm_card_data"], ["hard", null, "try_again_later"]])
      const due = yield* Effect.repeat(desk.purser(["retry", "--due", "--json"], waits), { until: ({ json }) => json?.["due"] !== 0 })
      assert.deepInclude(due.json, { due: 1, Declined: 1 })
      assert.deepInclude(yield* show(desk, "later"), { attempt: 2 })
      assert.strictEqual((yield* confirms(desk)).length, 5)
      assert.deepStrictEqual(yield* desk.paid, [])
    })), 240_000)

it.live("soft declines that are due are asked again as the next attempt, until policy ends", () =>
  atDesk((desk) =>
    Effect.gen(function*() {
      const waits = { PURSER_DUNNING_WAITS: "1 second" }
      yield* bill(desk, [row("b", "pm_card_chargeDeclinedInsufficientFunds"), row("x", "pm_card_chargeDeclinedLostCard")], waits)
      const due = yield* Effect.repeat(desk.purser(["retry", "--due", "--json"], waits), { until: ({ json }) => json?.["due"] === 1 })
      assert.strictEqual(due.code, 2)
      assert.deepInclude(due.json, { due: 1, Declined: 1 })
      assert.deepInclude(yield* show(desk, "b"), { state: "declined", attempt: 2, nextAttemptAtMs: null })
      assert.deepInclude(yield* show(desk, "x"), { state: "declined", attempt: 1 })
      assert.strictEqual((yield* confirms(desk)).length, 3)
    })), 240_000)
