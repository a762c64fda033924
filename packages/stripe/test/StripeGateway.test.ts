import { assert, describe, it } from "@effect/vitest"
import { ChargeGateway } from "@purser/core"
import { StripeSim } from "@purser/stripe-sim"
import { StripeClient, StripeGateway } from "@purser/stripe"
import { Effect, Layer, Redacted } from "effect"
import { confirm, created, failing, gatewayAt, onSim, orderFor, stub, visible } from "./support.ts"

const order = orderFor()
const key = order.chargeKey
const gateway = ChargeGateway
const idempotencyKeys = Effect.map(Effect.flatMap(StripeSim, (sim) => sim.requests), (entries) => entries.map((entry) => entry.idempotencyKey))
/** Payments and their sum, for every identity that was charged. */
const booked = Effect.map(
  Effect.flatMap(StripeSim, (sim) => sim.books),
  (books) => books.filter(({ payments }) => payments > 0).map(({ amountMinor, payments }) => [payments, amountMinor])
)
const sdk = (operation: string, use: Parameters<StripeClient["Service"]["call"]>[1]) =>
  Effect.flatMap(StripeClient, (client) => client.call(operation, use))

describe("create", () => {
  it.effect("makes an unconfirmed object that says whose it is, and moves no money", () =>
    Effect.gen(function*() {
      const item = orderFor({ item: "seats", customerId: "cust & co=1%", namespace: "ns" }, 3)
      const payment = yield* created(item)
      assert.deepStrictEqual(payment, {
        id: payment.id,
        status: "unconfirmed",
        amountMinor: 1234,
        amountReceivedMinor: 0,
        currency: "usd",
        stripeCustomerId: "cus_1",
        chargeKey: item.chargeKey,
        generation: 3,
        chargeId: null,
        decline: null,
        paymentMethod: null
      })
      const answer = yield* sdk("look", (stripe) => stripe.paymentIntents.retrieve(payment.id))
      assert.deepNestedInclude(answer.json as object, {
        metadata: {
          charge_key: item.chargeKey,
          customer_id: "cust & co=1%",
          billing_period: "2026-07",
          namespace: "ns",
          item: "seats",
          generation: "3"
        },
        payment_method: null,
        allowed_payment_method_types: ["card"]
      })
      assert.deepStrictEqual(yield* booked, [])
      assert.strictEqual((yield* idempotencyKeys)[0], `${item.chargeKey}:g3:create`)
    }).pipe(Effect.provide(onSim())))

  it.effect("carries metadata of the greatest length and any letters", () =>
    Effect.gen(function*() {
      const long = "€".repeat(85)
      const odd = orderFor({ customerId: long, item: "a&b=c[d]+%20'\"\\🧾", namespace: long })
      const payment = yield* created(odd)
      assert.strictEqual(payment.chargeKey, odd.chargeKey)
      yield* confirm(odd, payment.id)
      assert.strictEqual(yield* (yield* StripeSim).payments(long, "2026-07", "a&b=c[d]+%20'\"\\🧾"), 1)
    }).pipe(Effect.provide(onSim())))

  it.effect("repeated, gives the same object; with a suffix or another generation, a new one", () =>
    Effect.gen(function*() {
      const { create } = yield* gateway
      const first = yield* create(order, "")
      assert.strictEqual((yield* create(order, "")).id, first.id)
      assert.notStrictEqual((yield* create(order, ":r2")).id, first.id)
      assert.notStrictEqual((yield* create({ ...order, generation: 2 }, "")).id, first.id)
      assert.deepStrictEqual(yield* idempotencyKeys, [`${key}:g1:create`, `${key}:g1:create`, `${key}:g1:create:r2`, `${key}:g2:create`])
    }).pipe(Effect.provide(onSim())))

  it.effect("repeated while the customer's default method changes, is no misuse of the key", () =>
    Effect.gen(function*() {
      const first = yield* created(order)
      yield* sdk("change", (stripe) => stripe.customers.update("cus_1", { invoice_settings: { default_payment_method: "pm_new" } }))
      assert.strictEqual((yield* created(order)).id, first.id)
      assert.strictEqual(yield* (yield* gateway).defaultPaymentMethod(order), "pm_new")
    }).pipe(Effect.provide(onSim())))

  it.effect("with other terms under the same key is KeyReused", () =>
    Effect.gen(function*() {
      yield* created(order)
      const error = yield* failing(created({ ...order, request: orderFor({ amountMinor: 999 }).request }))
      assert.strictEqual(error.reason._tag, "KeyReused")
    }).pipe(Effect.provide(onSim())))

  for (const [name, order, code] of [
    ["too small an amount", orderFor({ amountMinor: 49 }), "amount_too_small"],
    ["a deleted customer", orderFor({ stripeCustomerId: "cus_DELETED_1" }), "resource_missing"],
    ["no such customer", orderFor({ stripeCustomerId: "cus_NONE_1" }), "resource_missing"]
  ] as const) {
    it.effect(`${name} is InvalidRequest ${code}`, () =>
      Effect.gen(function*() {
        const error = yield* failing(created(order))
        assert.deepInclude(error.reason, { _tag: "InvalidRequest", code })
        assert.match(error.requestId ?? "", /^req_/)
      }).pipe(Effect.provide(onSim())))
  }

  it.effect("an invalid key is PermissionDenied, and the part of it that Stripe repeats is not shown", () =>
    Effect.gen(function*() {
      const { url } = yield* StripeSim
      const client = StripeClient.layer({ key: Redacted.make("rk_test_INVALID_something_Hush"), url })
      const attempt = created(order).pipe(Effect.provide(StripeGateway.layerPaymentIntentsWith().pipe(Layer.provide(client))))
      const error = yield* Effect.flip(attempt)
      assert.strictEqual(error.message, "permission denied: Invalid API Key provided: [key]")
      assert.notInclude(yield* visible(attempt), "Hush")
    }).pipe(Effect.provide(onSim())))
})

describe("a connected account", () => {
  it.effect("that the charge is of is asked, whatever account is set; where it names none, the one that is set", () =>
    Effect.gen(function*() {
      const accounts = Effect.map(Effect.flatMap(StripeSim, (sim) => sim.requests), (entries) => entries.map(({ account }) => account))
      const theirs = orderFor({ namespace: "zmq-billing@acct_theirs" })
      yield* confirm(theirs, (yield* created(theirs)).id)
      assert.deepStrictEqual(yield* accounts, ["acct_theirs", "acct_theirs"])
      yield* confirm(order, (yield* created(order)).id)
      assert.deepStrictEqual((yield* accounts).slice(2), ["acct_set", "acct_set"])
    }).pipe(Effect.provide(onSim({ account: "acct_set" }))))
})

describe("confirm", () => {
  it.effect("moves the money once, however often it is repeated", () =>
    Effect.gen(function*() {
      const { id } = yield* created(order)
      const paid = yield* confirm(order, id)
      assert.deepInclude(paid, { id, status: "succeeded", amountReceivedMinor: 1234 })
      assert.match(paid.chargeId ?? "", /^ch_/)
      assert.deepStrictEqual(yield* confirm(order, id), paid, "the stored answer")
      assert.deepStrictEqual(yield* confirm(order, id, "pm_card_visa", 2), paid, "another attempt")
      assert.deepStrictEqual(yield* confirm(order, id, "pm_card_visa", 1, ":r2"), paid, "another key")
      yield* (yield* StripeSim).advanceClock("3 days")
      assert.deepStrictEqual(yield* confirm(order, id), paid, "a key that was forgotten")
      assert.deepStrictEqual(yield* (yield* gateway).retrieve(order, id), paid)
      assert.deepStrictEqual(yield* booked, [[1, 1234]])
      assert.include(yield* idempotencyKeys, `${key}:g1:confirm:1`)
      assert.include(yield* idempotencyKeys, `${key}:g1:confirm:1:r2`)
    }).pipe(Effect.provide(onSim())))

  it.effect("of a paid object with a method that was deleted since, answers that it is paid", () =>
    Effect.gen(function*() {
      const { id } = yield* created(order)
      yield* confirm(order, id)
      const again = yield* confirm(order, id, "pm_DELETED_1", 2)
      assert.strictEqual(again.status, "succeeded")
    }).pipe(Effect.provide(onSim())))

  it.effect("with a method that does not exist is InvalidRequest", () =>
    Effect.gen(function*() {
      const { id } = yield* created(order)
      const error = yield* failing(confirm(order, id, "pm_NONE_1"))
      assert.deepInclude(error.reason, { _tag: "InvalidRequest", code: "resource_missing", param: "payment_method" })
      assert.strictEqual((yield* (yield* gateway).retrieve(order, id)).status, "unconfirmed")
    }).pipe(Effect.provide(onSim())))

  it.effect("declined, tells why; the next attempt may pay the same object", () =>
    Effect.gen(function*() {
      const { id } = yield* created(order)
      const error = yield* failing(confirm(order, id, "pm_card_visa_chargeDeclinedInsufficientFunds"))
      assert.deepInclude(error.reason, { _tag: "CardDeclined", code: "card_declined", declineCode: "insufficient_funds" })
      const replayed = yield* failing(confirm(order, id, "pm_card_visa_chargeDeclinedInsufficientFunds"))
      assert.strictEqual(replayed.message, error.message)
      const refused = yield* (yield* gateway).retrieve(order, id)
      assert.strictEqual(refused.status, "declined")
      assert.deepInclude(refused.decline, { code: "card_declined", declineCode: "insufficient_funds" })
      assert.strictEqual((yield* confirm(order, id, "pm_card_visa", 2)).status, "succeeded")
    }).pipe(Effect.provide(onSim())))

  it.effect("of a card that wants its holder is AuthenticationRequired", () =>
    Effect.gen(function*() {
      const { id } = yield* created(order)
      const error = yield* failing(confirm(order, id, "pm_card_authenticationRequired"))
      assert.strictEqual(error.reason._tag, "AuthenticationRequired")
      assert.strictEqual(error.outcome, "not_charged")
    }).pipe(Effect.provide(onSim())))

  it.effect("of a payment that settles later is processing, and stays it when repeated", () =>
    Effect.gen(function*() {
      const { id } = yield* created(order)
      assert.strictEqual((yield* confirm(order, id, "pm_card_processing")).status, "processing")
      assert.strictEqual((yield* confirm(order, id, "pm_card_visa", 2)).status, "processing")
      yield* (yield* StripeSim).settle(id, "succeeded")
      assert.strictEqual((yield* confirm(order, id, "pm_card_visa", 3)).status, "succeeded")
    }).pipe(Effect.provide(onSim())))

  it.effect("of an object that is not there is not a charge, but its outcome is not known either", () =>
    Effect.gen(function*() {
      const error = yield* failing(confirm(order, "pi_missing"))
      assert.strictEqual(error.reason._tag, "UnexpectedAnswer")
    }).pipe(Effect.provide(onSim())))

  it.effect("is off session and names the method", () =>
    Effect.gen(function*() {
      const server = yield* stub(({ socket }) => socket.resetAndDestroy())
      yield* failing(confirm(order, "pi_1", "pm_1", 7)).pipe(Effect.provide(Layer.orDie(gatewayAt(server.url))))
      const [request] = server.requests
      assert.strictEqual(request?.body, "payment_method=pm_1&off_session=true")
      assert.strictEqual(request?.headers["idempotency-key"], `${key}:g1:confirm:7`)
    }))
})

describe("cancel", () => {
  it.effect("gives up an unpaid object for good, and may be repeated", () =>
    Effect.gen(function*() {
      const { cancel } = yield* gateway
      const { id } = yield* created(order)
      assert.strictEqual((yield* cancel(order, id)).status, "canceled")
      assert.strictEqual((yield* cancel(order, id)).status, "canceled")
      assert.strictEqual((yield* confirm(order, id)).status, "canceled")
      assert.deepStrictEqual(yield* booked, [])
    }).pipe(Effect.provide(onSim())))

  it.effect("of a paid object answers that it is paid", () =>
    Effect.gen(function*() {
      const { id } = yield* created(order)
      yield* confirm(order, id)
      assert.strictEqual((yield* (yield* gateway).cancel(order, id)).status, "succeeded")
    }).pipe(Effect.provide(onSim())))

  it.effect("of an object that is not there is InvalidRequest", () =>
    Effect.gen(function*() {
      const error = yield* failing(Effect.flatMap(gateway, ({ cancel }) => cancel(order, "pi_missing")))
      assert.deepInclude(error.reason, { _tag: "InvalidRequest", code: "resource_missing" })
    }).pipe(Effect.provide(onSim())))
})

describe("find", () => {
  const since = (ms: number) => Effect.flatMap(gateway, ({ find }) => find(order, ms))

  it.effect("finds its own object among hundreds of others, at once", () =>
    Effect.gen(function*() {
      const mine = yield* created(order)
      const others = Array.from({ length: 230 }, (_, index) => orderFor({ customerId: `other_${index}` }))
      yield* Effect.forEach(others, created, { concurrency: 16 })
      const nowMs = yield* (yield* StripeSim).nowMs
      assert.deepStrictEqual(yield* since(nowMs), mine)
      const pages = (yield* (yield* StripeSim).requests).filter((entry) => entry.method === "GET")
      assert.strictEqual(pages.length, 3)
    }).pipe(Effect.provide(onSim())))

  it.effect("a payment of a later generation is it, as a restored ledger needs", () =>
    Effect.gen(function*() {
      const later = yield* created({ ...order, generation: 2 })
      assert.strictEqual((yield* since(0))?.id, later.id)
    }).pipe(Effect.provide(onSim())))

  it.effect("another customer and an older time are not it", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim
      assert.strictEqual(yield* since(0), undefined)
      const mine = yield* created(order)
      assert.strictEqual((yield* since(yield* sim.nowMs))?.id, mine.id, "a clock that runs ahead by seconds does not hide it")
      yield* sim.advanceClock("2 days")
      assert.strictEqual(yield* since(yield* sim.nowMs), undefined)
      assert.strictEqual((yield* since(0))?.id, mine.id)
    }).pipe(Effect.provide(onSim())))

  it.effect("prefers the paid one and skips canceled ones", () =>
    Effect.gen(function*() {
      const { cancel, create } = yield* gateway
      const first = yield* create(order, "")
      const second = yield* create(order, ":r2")
      assert.strictEqual((yield* since(0))?.id, first.id)
      yield* confirm(order, second.id)
      assert.strictEqual((yield* since(0))?.id, second.id)
      yield* cancel(order, first.id)
      assert.deepInclude(yield* since(0), { id: second.id, status: "succeeded" })
    }).pipe(Effect.provide(onSim())))

  it.effect("of a customer that does not exist finds nothing", () =>
    Effect.gen(function*() {
      const { find } = yield* gateway
      assert.strictEqual(yield* find(orderFor({ stripeCustomerId: "cus_NONE_1" }), 0), undefined)
    }).pipe(Effect.provide(onSim())))
})

describe("defaultPaymentMethod", () => {
  const of = (stripeCustomerId: string) => Effect.flatMap(gateway, (service) => service.defaultPaymentMethod(orderFor({ stripeCustomerId })))

  it.effect("is the customer's default method, which pays", () =>
    Effect.gen(function*() {
      const method = yield* of("cus_1")
      const { id } = yield* created(order)
      assert.strictEqual((yield* confirm(order, id, method)).status, "succeeded")
    }).pipe(Effect.provide(onSim())))

  for (const [customer, code] of [["cus_DELETED_1", "resource_missing"], ["cus_NONE_1", "resource_missing"]] as const) {
    it.effect(`${customer}: no method`, () =>
      Effect.gen(function*() {
        const error = yield* failing(of(customer))
        assert.deepInclude(error.reason, { _tag: "InvalidRequest", code })
      }).pipe(Effect.provide(onSim())))
  }

  it.effect("without one is payment_method_missing", () =>
    Effect.gen(function*() {
      const answer = yield* sdk("make", (stripe) => stripe.customers.create({ email: "a@example.com" }))
      const error = yield* failing(of((answer.json as { readonly id: string }).id))
      assert.deepInclude(error.reason, { _tag: "InvalidRequest", code: "payment_method_missing" })
    }).pipe(Effect.provide(onSim())))
})
