import { StripeSim } from "@purser/stripe-sim"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type Stripe from "stripe"
import { call, raw, refusal, sdk } from "./support.ts"

describe("an account by default", () => {
  it.effect("holds every customer that is asked for, with a default card that succeeds", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const customer = (yield* call(() => sdk(sim).customers.retrieve("cus_T001"))) as Stripe.Customer
      const method = String(customer.invoice_settings.default_payment_method)
      assert.strictEqual((yield* call(() => sdk(sim).paymentMethods.retrieve(method))).customer, "cus_T001")
      const paid = yield* call(() =>
        sdk(sim).paymentIntents.create({
          amount: 100,
          currency: "usd",
          customer: "cus_T001",
          payment_method: method,
          allowed_payment_method_types: ["card"],
          confirm: true,
          off_session: true
        })
      )
      assert.deepInclude(paid, { status: "succeeded", payment_method: method })
      const other = yield* refusal(() =>
        sdk(sim).paymentIntents.create({ amount: 100, currency: "usd", customer: "cus_T002", payment_method: method })
      )
      assert.include(other.message, "must be attached to the customer")
    }))

  it.effect("shows a deleted customer as deleted and refuses to charge it", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      assert.deepInclude(yield* call(() => sdk(sim).customers.retrieve("cus_TDELETED")), {
        id: "cus_TDELETED",
        object: "customer",
        deleted: true
      })
      const error = yield* refusal(() =>
        sdk(sim).paymentIntents.create({ amount: 100, currency: "usd", customer: "cus_TDELETED" })
      )
      assert.deepInclude(error, { code: "resource_missing", message: "No such customer: 'cus_TDELETED'" })
    }))

  it.effect("does not hold ids with NONE, nor ids of another kind", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      for (const id of ["cus_TNONE", "user_1", "cus_"]) {
        assert.deepInclude(yield* refusal(() => sdk(sim).customers.retrieve(id)), { statusCode: 404, code: "resource_missing" })
      }
      for (const id of ["pm_NONE", "card_1"]) {
        const error = yield* refusal(() => sdk(sim).paymentMethods.retrieve(id))
        assert.deepInclude(error, { statusCode: 404, code: "resource_missing" })
      }
    }))

  it.effect("lets an id name what its card does", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const charge = (customer: string) => () => sdk(sim).charges.create({ amount: 100, currency: "usd", customer })
      const error = yield* refusal(charge("cus_7_chargeDeclinedInsufficientFunds"))
      assert.deepInclude(error, { statusCode: 402, code: "card_declined", decline_code: "insufficient_funds" })
      assert.strictEqual((yield* call(charge("cus_7_fine"))).status, "succeeded")
    }))
})

describe("a strict account", () => {
  it.effect("holds only what was created, and the public test methods", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make({ strict: true })
      assert.strictEqual((yield* refusal(() => sdk(sim).customers.retrieve("cus_T001"))).statusCode, 404)
      assert.strictEqual((yield* refusal(() => sdk(sim).paymentMethods.retrieve("pm_T001"))).statusCode, 404)
      const customer = yield* call(() => sdk(sim).customers.create({ email: "a@example.com", metadata: { tier: "gold" } }))
      const method = yield* call(() => sdk(sim).paymentMethods.create({ type: "card", card: { token: "tok_visa" } }))
      yield* call(() => sdk(sim).paymentMethods.attach(method.id, { customer: customer.id }))
      const updated = yield* call(() =>
        sdk(sim).customers.update(customer.id, { invoice_settings: { default_payment_method: method.id } })
      )
      assert.deepInclude(updated, { email: "a@example.com", invoice_settings: { ...updated.invoice_settings, default_payment_method: method.id } })
      const charge = yield* call(() => sdk(sim).charges.create({ amount: 100, currency: "usd", customer: customer.id }))
      assert.strictEqual(charge.payment_method, method.id)
      yield* call(() => sdk(sim).customers.del(customer.id))
      assert.deepInclude(yield* call(() => sdk(sim).customers.retrieve(customer.id)), { deleted: true })
    }))

  it.effect("does not charge a customer without a card", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make({ strict: true })
      const customer = yield* call(() => sdk(sim).customers.create())
      const error = yield* refusal(() => sdk(sim).charges.create({ amount: 100, currency: "usd", customer: customer.id }))
      assert.strictEqual(error.code, "missing")
    }))
})

describe("the one-call API", () => {
  it.effect("charges a named source, declines with the charge's id, and lists newest first", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const charge = (source: string) => () => sdk(sim).charges.create({ amount: 100, currency: "usd", source })
      const paid = yield* call(charge("tok_visa"))
      assert.deepInclude(paid, { status: "succeeded", paid: true, payment_intent: null })
      const error = yield* refusal(charge("tok_chargeDeclined"))
      assert.deepInclude(error, { statusCode: 402, code: "card_declined", decline_code: "generic_decline" })
      const list = yield* call(() => sdk(sim).charges.list())
      assert.deepStrictEqual(list.data.map(({ id }) => id), [error.charge, paid.id])
      assert.deepInclude(yield* call(() => sdk(sim).charges.retrieve(paid.id)), { id: paid.id, amount: 100 })
      assert.strictEqual((yield* refusal(() => sdk(sim).charges.retrieve("ch_none"))).statusCode, 404)
      assert.strictEqual((yield* raw(sim, "/v1/charges", { body: "amount=100&currency=usd" })).status, 400)
    }))
})

describe("keys and URLs", () => {
  it.effect("a missing, malformed or invalid key is refused with 401 and nothing else runs", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const headers = ["", "Bearer", "Bearer hello", "Bearer sk_test_INVALID", "Basic !!!"]
      for (const authorization of headers) {
        const answer = yield* raw(sim, "/v1/charges", {
          body: "amount=100&currency=usd&customer=cus_1",
          key: "k",
          headers: { authorization }
        })
        assert.strictEqual(answer.status, 401)
        assert.strictEqual(answer.json.error.type, "invalid_request_error")
      }
      assert.lengthOf(yield* sim.books, 0)
      const good = yield* raw(sim, "/v1/charges", { body: "amount=100&currency=usd&customer=cus_1", key: "k" })
      assert.strictEqual(good.status, 200)
      assert.notInclude((yield* raw(sim, "/v1/charges", { headers: { authorization: "Bearer sk_test_secretINVALID99" } })).text, "secret")
    }))

  it.effect("a URL that is no endpoint answers in Stripe's words", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const paths: ReadonlyArray<string> = ["/v1/payouts", "/v1/refunds/search", "/v1/payment_intents/pi_1/dance", "/", "/v1/customers/"]
      for (const path of paths) {
        const answer = yield* raw(sim, path)
        assert.strictEqual(answer.status, 404)
        assert.include(answer.json.error.message, `Unrecognized request URL (GET: ${path})`)
      }
    }))

  it.effect("a body that is no form is refused", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const json = yield* raw(sim, "/v1/charges", { body: "{\"amount\":100}", headers: { "content-type": "application/json" } })
      assert.strictEqual(json.status, 400)
      const many = yield* raw(sim, "/v1/charges", { body: Array.from({ length: 1001 }, (_, at) => `p${at}=1`).join("&") })
      assert.strictEqual(many.status, 400)
      const large = yield* raw(sim, "/v1/charges", { body: `description=${"x".repeat(1_000_001)}` })
      assert.strictEqual(large.status, 413)
    }))
})
