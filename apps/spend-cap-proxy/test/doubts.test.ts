/** Attempts whose outcome nobody knows: each that may have paid has room of its own, and no answer gives room back twice. */
import { assert, describe, it } from "@effect/vitest"
import { ProxyServer, VaultAdmin, type Verdict, VaultStore } from "@purser/spend-cap-proxy"
import { type FaultAction, StripeSim } from "@purser/stripe-sim"
import { Effect, Redacted } from "effect"
import { call, chargeForm, databases, makeVault, paid, raw, sdk, trailOf, used, world } from "./support/world.ts"

const fails = (action: FaultAction) =>
  Effect.flatMap(StripeSim, (sim) => sim.faults.add({ match: { method: "POST", path: "/v1/charges" }, action }))

/** Charges with this key, and answers the status or the code. */
const charging = (vaultKey: string) => (key: string, amount: number, more = "") =>
  Effect.gen(function*() {
    const got = yield* raw(yield* ProxyServer, "/v1/charges", { vaultKey, key, body: chargeForm(amount, more) })
    return got.json?.error?.code ?? got.status
  })

const room = (id: string) => Effect.map(used(id), ({ heldMinor, paidMinor }) => [heldMinor, paidMinor])
const alarms = (id: string) => Effect.map(trailOf(id), (lines) => lines.filter(({ act }) => act === "alarm").map(({ code }) => code))

for (const [name, database] of databases) {
  describe(`a 5xx on ${name}`, () => {
    it.live("of a payment that Stripe then forgets is counted beside the next one under the same key", () =>
      Effect.gen(function*() {
        const { id, key } = yield* makeVault()
        const charge = charging(key)
        yield* fails({ kind: "serverError", effect: "done", stored: false })
        assert.strictEqual(yield* charge("same", 500), 500)
        assert.deepStrictEqual(yield* room(id), [500, 0])
        assert.strictEqual(yield* charge("same", 500), 200)
        assert.deepStrictEqual(yield* paid, { payments: 2, amountMinor: 1000 })
        assert.deepStrictEqual(yield* room(id), [500, 500])
        assert.strictEqual(yield* charge("same", 500), 200)
        assert.deepStrictEqual(yield* room(id), [500, 500])
        assert.strictEqual(yield* charge("other", 101), "spend_cap_exceeded")
        assert.strictEqual(yield* charge("small", 100), 200)
      }).pipe(Effect.provide(world(database))))

    it.live("leaves no second payment where there is no room for it, however often the key comes again", () =>
      Effect.gen(function*() {
        const { id, key } = yield* makeVault()
        const charge = charging(key)
        yield* fails({ kind: "serverError", effect: "done", stored: false })
        assert.strictEqual(yield* charge("same", 600), 500)
        for (const _ of [1, 2, 3]) assert.strictEqual(yield* charge("same", 600), "spend_cap_exceeded")
        assert.deepStrictEqual(yield* paid, { payments: 1, amountMinor: 600 })
        assert.deepStrictEqual(yield* room(id), [600, 0])
      }).pipe(Effect.provide(world(database))))

    it.live("that is carried out later is counted beside what its key paid in between", () =>
      Effect.gen(function*() {
        const { id, key } = yield* makeVault({ expectedMinor: 1500 })
        const charge = charging(key)
        for (const _ of [1, 2]) {
          yield* fails({ kind: "serverError", effect: "later", stored: false })
          assert.strictEqual(yield* charge("same", 500), 500)
        }
        assert.strictEqual(yield* charge("same", 500), 200)
        yield* (yield* StripeSim).rollForward
        const { amountMinor } = yield* paid
        assert.isAbove(amountMinor, 500)
        assert.deepStrictEqual(yield* room(id), [1000, 500])
      }).pipe(Effect.provide(world(database))))

    it.live("whose answer Stripe remembers takes no second room: it is settled, or stays, by what Stripe repeats", () =>
      Effect.gen(function*() {
        const { id, key } = yield* makeVault({ expectedMinor: 1500 })
        const charge = charging(key)
        yield* fails({ kind: "badGateway", effect: "done" })
        assert.strictEqual(yield* charge("hidden", 500), 502)
        assert.strictEqual(yield* charge("hidden", 500), 200)
        assert.deepStrictEqual(yield* room(id), [0, 500])
        yield* fails({ kind: "badGateway", effect: "done" })
        assert.strictEqual(yield* charge("declined", 500, "&source=pm_card_visa_chargeDeclined"), 502)
        assert.strictEqual(yield* charge("declined", 500, "&source=pm_card_visa_chargeDeclined"), "card_declined")
        assert.deepStrictEqual(yield* room(id), [0, 500])
        yield* fails({ kind: "serverError", effect: "later", stored: true })
        for (const _ of [1, 2, 3]) assert.strictEqual(yield* charge("kept", 500), 500)
        assert.deepStrictEqual(yield* room(id), [500, 500])
        // As full as it may be, and the kept answer is still to be had: it moves nothing.
        assert.strictEqual(yield* charge("rest", 650), 200)
        assert.strictEqual(yield* charge("kept", 500), 500)
        yield* (yield* StripeSim).rollForward
        assert.deepStrictEqual(yield* paid, { payments: 3, amountMinor: 1650 })
        assert.deepStrictEqual(yield* room(id), [500, 1150])
      }).pipe(Effect.provide(world(database))))

    it.live("under the duplicate guard is resumed under its own key and with room of its own; what was paid is the answer from then on", () =>
      Effect.gen(function*() {
        const { id, key } = yield* makeVault({ duplicateGuard: true })
        const charge = charging(key)
        yield* fails({ kind: "serverError", effect: "none", stored: false })
        assert.strictEqual(yield* charge("try-1", 500), 500)
        assert.strictEqual(yield* charge("try-2", 500), 200)
        assert.deepStrictEqual(yield* room(id), [500, 500])
        const reached = (yield* (yield* StripeSim).requests).length
        assert.strictEqual(yield* charge("try-3", 500), 200)
        assert.strictEqual((yield* (yield* StripeSim).requests).length, reached)
        assert.deepStrictEqual(yield* paid, { payments: 1, amountMinor: 500 })
        assert.deepStrictEqual(yield* room(id), [500, 500])
      }).pipe(Effect.provide(world(database))))

    it.live("of one of two attempts that are under way at once is counted beside the other, with an alarm", () =>
      Effect.gen(function*() {
        const store = yield* VaultStore
        const { id, key } = yield* makeVault()
        const decide = store.decide({
          vaultKey: Redacted.make(key), kind: "charge", method: "POST", path: "/v1/charges", key: "same", fingerprint: "same", amountMinor: 600, currency: "usd", customer: "cus_1",
          intentId: null, body: null, period: null, account: "", fetched: false, problem: null
        })
        const came = (verdict: Verdict, effect: "unknown" | "paid", status: number) =>
          store.record({
            verdict, kind: "charge", key: "same", effect, objectId: effect === "paid" ? "ch_1" : null, intentId: null, amountMinor: null, status, requestId: null, replayed: false,
            detail: null, answer: null
          })
        const one = yield* decide
        const two = yield* decide
        assert.deepStrictEqual([one.verdict, two.verdict], ["permitted", "replayed"])
        yield* came(one, "unknown", 500)
        assert.deepStrictEqual(yield* room(id), [600, 0])
        yield* came(two, "paid", 200)
        assert.deepStrictEqual(yield* room(id), [600, 600])
        assert.deepStrictEqual(yield* alarms(id), ["attempts_overlapped"])
      }).pipe(Effect.provide(world(database))))
  })

  describe(`room that is given back, on ${name}`, () => {
    it.live("is given back once, however often a decline is repeated under its key", () =>
      Effect.gen(function*() {
        const { id, key } = yield* makeVault()
        const charge = charging(key)
        for (const _ of [1, 2, 3]) {
          assert.strictEqual(yield* charge("declined", 400, "&source=pm_card_visa_chargeDeclined"), "card_declined")
          assert.deepStrictEqual(yield* room(id), [0, 0])
        }
        assert.strictEqual(yield* charge("a", 1000), 200)
        assert.strictEqual(yield* charge("b", 101), "spend_cap_exceeded")
        assert.deepStrictEqual(yield* room(id), [0, 1000])
      }).pipe(Effect.provide(world(database))))

    it.live("by hand and paid all the same is counted, and the customer's second payment is an alarm", () =>
      Effect.gen(function*() {
        const admin = yield* VaultAdmin
        const { id, key } = yield* makeVault({ duplicateGuard: true })
        const stripe = sdk(key, yield* ProxyServer)
        const direct = sdk("sk_test_other", yield* StripeSim)
        const order = { amount: 500, currency: "usd", customer: "cus_1", payment_method: "pm_card_visa", allowed_payment_method_types: ["card"] }
        const intent = yield* call(() => stripe.paymentIntents.create(order, { idempotencyKey: "first" }))
        yield* admin.release({ id, customer: "cus_1", reason: "said to be off" })
        assert.strictEqual(yield* charging(key)("second", 500), 200)
        assert.deepStrictEqual(yield* alarms(id), [])
        yield* call(() => direct.paymentIntents.confirm(intent.id, { off_session: true }))
        // The refusal of Stripe to cancel it shows that it is paid.
        yield* Effect.flip(call(() => stripe.paymentIntents.cancel(intent.id)))
        assert.deepStrictEqual(yield* room(id), [0, 1000])
        assert.deepStrictEqual(yield* paid, { payments: 2, amountMinor: 1000 })
        assert.deepStrictEqual(yield* alarms(id), ["customer_paid_twice"])
      }).pipe(Effect.provide(world(database))))

    it.live("is the allowance of a refund that was not made; one that was made, or may have been, keeps it", () =>
      Effect.gen(function*() {
        const proxy = yield* ProxyServer
        const sim = yield* StripeSim
        const { key: vaultKey } = yield* makeVault({ allow: ["POST:/v1/charges", "POST:/v1/refunds"] })
        const charge = yield* raw(proxy, "/v1/charges", { vaultKey, key: "charge", body: chargeForm(1000) })
        const refund = (key: string, amount: number, of = String(charge.json.id)) =>
          Effect.map(raw(proxy, "/v1/refunds", { vaultKey, key, body: `charge=${of}&amount=${amount}` }), ({ json, status }) => json.error?.code ?? status)
        for (const _ of [1, 2]) assert.strictEqual(yield* refund("missing", 700, "ch_none"), "resource_missing")
        yield* sim.faults.add({ match: { path: "/v1/refunds" }, action: { kind: "serverError", effect: "none", stored: false } })
        assert.strictEqual(yield* refund("doubtful", 300), 500)
        assert.strictEqual(yield* refund("too much", 701), "refund_limit_exceeded")
        assert.strictEqual(yield* refund("made", 600), 200)
        assert.strictEqual(yield* refund("made", 600), 200)
        assert.strictEqual(yield* refund("over", 101), "refund_limit_exceeded")
        assert.strictEqual(yield* refund("doubtful", 300), 200)
        assert.strictEqual(yield* refund("rest", 100), 200)
        assert.strictEqual(yield* refund("nothing is left", 1), "refund_limit_exceeded")
      }).pipe(Effect.provide(world(database))))
  })
}
