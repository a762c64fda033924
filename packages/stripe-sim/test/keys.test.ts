import { StripeSim } from "@purser/stripe-sim"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Stripe } from "stripe"
import { call, raw, refusal, sdk, type Sim } from "./support.ts"

const withKey = (sim: Sim, key: string): Stripe =>
  new Stripe(key, { host: sim.host, port: sim.port, protocol: "http", telemetry: false, maxNetworkRetries: 0 })

const needs = (error: Stripe.errors.StripeError): string | undefined => /'(rak_\w+)'/.exec(error.message)?.[1]

describe("restricted keys", () => {
  it.effect("do what they may and are told which permission is missing", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make({
        restrictedKeys: [{ key: "rk_test_1234567890abcd", permissions: { payment_intent: "write", customer: "read" } }]
      })
      const stripe = withKey(sim, "rk_test_1234567890abcd")
      const intent = yield* call(() => stripe.paymentIntents.create({ amount: 100, currency: "usd" }))
      yield* call(() => stripe.paymentIntents.retrieve(intent.id))
      yield* call(() => stripe.customers.retrieve("cus_1"))
      const error = yield* refusal(() => stripe.customers.update("cus_1", { name: "x" }))
      assert.strictEqual(error.type, "StripePermissionError")
      assert.strictEqual(error.statusCode, 403)
      assert.strictEqual(error.rawType, "invalid_request_error")
      assert.strictEqual(
        error.message,
        `The provided key 'rk_test_***abcd' does not have the required permissions for this endpoint on account '${sim.accountId}'. Having the 'rak_customer_write' permission would allow this request to continue.`
      )
      assert.strictEqual(needs(yield* refusal(() => stripe.refunds.create({ payment_intent: intent.id }))), "rak_charge_write")
      assert.strictEqual(needs(yield* refusal(() => stripe.events.list())), "rak_event_read")
      assert.strictEqual(needs(yield* refusal(() => stripe.invoices.list())), "rak_invoice_read")
      assert.strictEqual(needs(yield* refusal(() => stripe.webhookEndpoints.list())), "rak_webhook_read")
    }))

  it.effect("a refusal runs nothing, is stored under no key, and ends when the permission is given", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make({ restrictedKeys: [{ key: "rk_live_1", permissions: {} }] })
      const pay = () =>
        withKey(sim, "rk_live_1").charges.create({ amount: 100, currency: "usd", customer: "cus_1" }, { idempotencyKey: "k" })
      assert.strictEqual(needs(yield* refusal(pay)), "rak_charge_write")
      assert.strictEqual(yield* sim.payments("cus_1", ""), 0)
      yield* sim.permitKey({ key: "rk_live_1", permissions: { charge: "write" } })
      assert.strictEqual((yield* call(pay)).status, "succeeded")
      yield* raw(sim, "/_sim/keys", { body: JSON.stringify({ key: "rk_live_1", permissions: { charge: "read" } }) })
      assert.strictEqual(needs(yield* refusal(pay)), "rak_charge_write")
      assert.strictEqual((yield* call(() => withKey(sim, "rk_live_1").charges.list())).data.length, 1)
      // Keys that nobody restricted may do everything.
      yield* call(() => withKey(sim, "rk_test_free").charges.list())
    }))
})

describe("connected accounts", () => {
  it.effect("have objects, keys, events and books of their own", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      const pay = (stripeAccount?: string) =>
        call(() =>
          stripe.charges.create({ amount: 100, currency: "usd", customer: "cus_1" }, {
            idempotencyKey: "k",
            ...(stripeAccount === undefined ? {} : { stripeAccount })
          })
        )
      const [own, a, b] = [yield* pay(), yield* pay("acct_a"), yield* pay("acct_b")]
      assert.strictEqual(new Set([own.id, a.id, b.id]).size, 3)
      assert.strictEqual((yield* pay("acct_a")).id, a.id)
      assert.strictEqual((yield* refusal(() => stripe.charges.retrieve(a.id))).statusCode, 404)
      assert.strictEqual((yield* call(() => stripe.charges.retrieve(a.id, {}, { stripeAccount: "acct_a" }))).id, a.id)
      const events = yield* call(() => stripe.events.list({}, { stripeAccount: "acct_b" }))
      assert.deepStrictEqual(events.data.map(({ account, type }) => [account, type]), [["acct_b", "charge.succeeded"]])
      assert.deepStrictEqual((yield* sim.books).map(({ account, payments }) => [account, payments]), [
        [undefined, 1],
        ["acct_a", 1],
        ["acct_b", 1]
      ])
      assert.deepStrictEqual((yield* sim.requests).map(({ account }) => account), [undefined, "acct_a", "acct_b", "acct_a", undefined, "acct_a", "acct_b"])
    }))

  it.effect("that the key has no access to are refused, as are restricted keys without rights there", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make({
        strict: true,
        restrictedKeys: [{ key: "rk_test_c", permissions: { charge: "write" }, connect: { charge: "read" } }]
      })
      const there = { stripeAccount: "acct_a" }
      const error = yield* refusal(() => sdk(sim).charges.list({}, there))
      assert.deepInclude(error, { statusCode: 403, code: "account_invalid", type: "StripePermissionError" })
      yield* sim.connect("acct_a")
      assert.deepStrictEqual((yield* call(() => sdk(sim).charges.list({}, there))).data, [])
      const stripe = withKey(sim, "rk_test_c")
      yield* call(() => stripe.charges.list({}, there))
      const refused = yield* refusal(() => stripe.charges.create({ amount: 100, currency: "usd", source: "tok_visa" }, there))
      assert.strictEqual(needs(refused), "rak_charge_write")
      assert.include(refused.message, "acct_a")
      yield* call(() => stripe.charges.create({ amount: 100, currency: "usd", source: "tok_visa" }))
    }))
})
