/** Refunds that somebody makes beside Purser, and refunds of the second of two payments; counted in the simulator's books. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { atDesk, csv, type Desk } from "../src/Desk.ts"

const live = (title: string, test: Parameters<typeof atDesk>[0]) => it.live(title, () => atDesk(test), 240_000)
const at = ["acme", "2026-07", "--item", "base"]
const post = (desk: Desk, path: string, params: Readonly<Record<string, string>>) =>
  Effect.promise(() =>
    fetch(`${desk.sim.url}${path}`, { method: "POST", headers: { Authorization: "Bearer sk_test_dashboard" }, body: new URLSearchParams(params) })
      .then((answer) => answer.json() as Promise<Record<string, unknown>>))
const dashboard = (desk: Desk, params: Readonly<Record<string, string>>) =>
  Effect.map(post(desk, "/v1/refunds", params), (refund) => assert.strictEqual(refund["status"], "succeeded", JSON.stringify(refund)))
const refund = (desk: Desk, ...more: ReadonlyArray<string>) => desk.purser(["refund", ...at, "--reason", "test", "--json", ...more])
const rebill = (desk: Desk) => desk.purser(["rebill", ...at, "--amount", "28.00", "--reason", "right price", "--json"])
const show = (desk: Desk) => Effect.map(desk.purser(["show", ...at, "--json"]), ({ json }) => json as Record<string, unknown> & { readonly paymentIntentId: string })
const reconcile = (desk: Desk) => desk.purser(["reconcile", "--period", "2026-07", "--json"])
/** What a customer has paid in the end, by the books, over all revisions. */
const kept = (desk: Desk) =>
  Effect.map(desk.sim.books, (books) => books.reduce((sum, entry) => sum + entry.amountMinor - (entry.refundedMinor ?? 0), 0))

const charged = Effect.fnUntraced(function*(desk: Desk) {
  const ended = yield* desk.purser(["run", desk.write("bill.csv", csv("acme,2026-07,30.00,USD,cus_T001,pm_T001,base")), "--expected-total", "100.00", "--yes"])
  assert.strictEqual(ended.code, 0, ended.stderr)
  return (yield* show(desk)).paymentIntentId
})

live("what the Dashboard gave back is not left: the figures say so, and never more than was paid goes back", (desk) =>
  Effect.gen(function*() {
    const intent = yield* charged(desk)
    yield* dashboard(desk, { payment_intent: intent, amount: "1000" })
    assert.strictEqual((yield* reconcile(desk)).code, 0)
    const dry = yield* refund(desk, "--dry-run")
    assert.include(dry.stderr, "20.00 usd would go back; 20.00 usd of 30.00 usd are left; 10.00 usd were given back elsewhere")
    const tooMuch = yield* refund(desk, "--amount", "20.01")
    assert.strictEqual(tooMuch.code, 1)
    assert.include(tooMuch.stderr, "20.01 usd is more than is left to refund: 20.00 usd of 30.00 usd; 10.00 usd were given back elsewhere")
    const early = yield* rebill(desk)
    assert.include(early.stderr, "10.00 usd of 30.00 usd were given back")
    const rest = yield* refund(desk)
    assert.deepInclude(rest.json, { _tag: "Refunded", amountMinor: 2000 }, rest.stderr)
    assert.strictEqual(yield* kept(desk), 0)
    const shown = yield* show(desk)
    assert.deepStrictEqual(shown["givenBack"], { receivedMinor: 3000, refundedMinor: 2000, elsewhereMinor: 1000, leftMinor: 0 })
    assert.notInclude(String(shown["next"]), "purser refund gives")
    const status = yield* desk.purser(["status", "2026-07"])
    assert.match(status.stdout, /succeeded +1 +20\.00 +20\.00/)
    assert.match(status.stdout, /elsewhere +1 +10\.00/)
    // Given back wholly, by two hands: that may be billed anew.
    const again = yield* rebill(desk)
    assert.strictEqual(again.code, 0, again.stderr)
    assert.strictEqual(yield* kept(desk), 2800)
  }))

live("what the Dashboard gave back wholly is billed anew, and a refund of it counts as done", (desk) =>
  Effect.gen(function*() {
    const intent = yield* charged(desk)
    yield* dashboard(desk, { payment_intent: intent })
    yield* reconcile(desk)
    const none = yield* refund(desk, "--dry-run")
    assert.strictEqual(none.code, 1)
    assert.include(none.stderr, "0.00 usd of 30.00 usd are left; 30.00 usd were given back elsewhere")
    const done = yield* refund(desk)
    assert.strictEqual(done.code, 0, done.stderr)
    assert.deepInclude(done.json, { _tag: "AlreadyRefunded" })
    const again = yield* rebill(desk)
    assert.strictEqual(again.code, 0, again.stderr)
    assert.strictEqual(yield* kept(desk), 2800)
  }))

live("a refund that Stripe answered with 'already refunded' is no money of ours in the status", (desk) =>
  Effect.gen(function*() {
    const intent = yield* charged(desk)
    yield* dashboard(desk, { payment_intent: intent })
    assert.deepInclude((yield* refund(desk)).json, { _tag: "AlreadyRefunded" })
    yield* reconcile(desk)
    const status = yield* desk.purser(["status", "2026-07", "--json"])
    const totals = JSON.parse(status.stdout) as { readonly refunds: ReadonlyArray<object>; readonly refundedElsewhere: ReadonlyArray<object> }
    assert.deepInclude(totals.refunds[0]!, { state: "already_refunded", givenBackMinor: 0 })
    assert.deepInclude(totals.refundedElsewhere[0]!, { refunds: 1, amountMinor: 3000 })
  }))

live("paid_twice: the payment that is named goes back, once, and only when it is that identity's", (desk) =>
  Effect.gen(function*() {
    const intent = yield* charged(desk)
    const key = (yield* desk.purser(["key", ...at])).stdout.trim()
    const pay = (metadata: Readonly<Record<string, string>>) =>
      post(desk, "/v1/payment_intents", {
        amount: "3000", currency: "usd", customer: "cus_T001", payment_method: "pm_T001", confirm: "true", off_session: "true", ...metadata
      })
    const second = String((yield* pay({
      "metadata[charge_key]": key, "metadata[customer_id]": "acme", "metadata[billing_period]": "2026-07", "metadata[namespace]": "zmq-billing", "metadata[item]": "base"
    }))["id"])
    const foreign = String((yield* pay({}))["id"])
    assert.deepInclude((yield* reconcile(desk)).json!["found"], { paid_twice: 1 })
    const refused = yield* refund(desk, "--payment", foreign)
    assert.strictEqual(refused.code, 1)
    assert.include(refused.stderr, "its metadata name no charge of Purser, not this charge")
    assert.strictEqual((yield* refund(desk, "--payment", "pi_nowhere")).code, 1)
    const dry = yield* refund(desk, "--payment", second, "--dry-run")
    assert.include(dry.stderr, "30.00 usd would go back; 30.00 usd of 30.00 usd are left")
    for (const alreadySettled of [false, true]) {
      const back = yield* refund(desk, "--payment", second)
      assert.strictEqual(back.code, 0, back.stderr)
      assert.deepInclude(back.json, { _tag: "Refunded", amountMinor: 3000, alreadySettled })
    }
    const byHand = (path: string) => Effect.promise(() =>
      fetch(`${desk.sim.url}${path}`, { headers: { Authorization: "Bearer sk_test_dashboard" } }).then((answer) => answer.json() as Promise<{ readonly data: ReadonlyArray<{ readonly amount: number }> }>))
    assert.deepStrictEqual((yield* byHand(`/v1/refunds?payment_intent=${second}`)).data.map(({ amount }) => amount), [3000])
    assert.deepStrictEqual((yield* byHand(`/v1/refunds?payment_intent=${intent}`)).data, [])
    // The row's own payment stays: it is not given back by that, and nothing is billed anew.
    assert.strictEqual((yield* rebill(desk)).code, 1)
    const own = yield* refund(desk, "--payment", intent)
    assert.deepInclude(own.json, { _tag: "Refunded", refundId: "1", amountMinor: 3000 })
    assert.deepStrictEqual((yield* byHand(`/v1/refunds?payment_intent=${intent}`)).data.map(({ amount }) => amount), [3000])
  }))
