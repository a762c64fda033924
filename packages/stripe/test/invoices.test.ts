/** An invoice holds what its charge is for and nothing else, and Stripe collects none of them on its own. The simulator's books are the judge. */
import { assert, describe, it } from "@effect/vitest"
import { ChargeGateway } from "@purser/core"
import { StripeClient, StripeGateway } from "@purser/stripe"
import { StripeSim } from "@purser/stripe-sim"
import { Effect, Layer, Redacted } from "effect"
import type { Stripe } from "stripe"
import { failing, orderFor, secret } from "./support.ts"

const order = orderFor()
const gateway = ChargeGateway
const onSim = StripeGateway.layerInvoicesWith().pipe(
  Layer.provideMerge(Layer.unwrap(Effect.map(StripeSim, ({ url }) => StripeClient.layer({ key: Redacted.make(secret), url })))),
  Layer.provideMerge(StripeSim.layer())
)

/** Another program's call of the same account. */
const elsewhere = <A>(use: (stripe: Stripe) => PromiseLike<A>) =>
  Effect.map(Effect.flatMap(StripeClient, (client) => client.call("elsewhere", use)), ({ json }) => json as A)
const paid = Effect.map(Effect.flatMap(StripeSim, (sim) => sim.books), (books) =>
  books.filter(({ payments }) => payments > 0).map(({ amountMinor, payments }) => [payments, amountMinor]))
const aMonth = Effect.flatMap(StripeSim, (sim) => sim.advanceClock("31 days"))

describe("an invoice of ours", () => {
  it.live("leaves what waits for the customer's next invoice where it is", () =>
    Effect.gen(function*() {
      const { confirm, create, prepare } = yield* gateway
      const other = yield* elsewhere((stripe) => stripe.invoiceItems.create({ customer: "cus_1", amount: 500, currency: "usd" }))
      const { id } = yield* create(order, "")
      assert.deepInclude(yield* prepare!(order, id, ""), { id, status: "unconfirmed", amountMinor: 1234 })
      assert.deepInclude(yield* confirm(order, { id, attempt: 1, paymentMethod: "pm_card_visa", keySuffix: "" }), { status: "succeeded", amountReceivedMinor: 1234 })
      assert.deepStrictEqual(yield* paid, [[1, 1234]])
      assert.isNull((yield* elsewhere((stripe) => stripe.invoiceItems.retrieve(other.id))).invoice)
    }).pipe(Effect.provide(onSim)))

  it.live("stays the draft that it is, however long nobody goes on with it", () =>
    Effect.gen(function*() {
      const { create, prepare, retrieve } = yield* gateway
      const { id } = yield* create(order, "")
      yield* (yield* StripeSim).faults.add({ match: { path: "/v1/invoices/*/finalize" }, action: { kind: "reset", at: "before" } })
      assert.strictEqual((yield* failing(prepare!(order, id, ""))).outcome, "unknown")
      assert.strictEqual((yield* elsewhere((stripe) => stripe.invoices.retrieve(id))).total, 1234)
      yield* aMonth
      assert.strictEqual((yield* retrieve(order, id)).status, "draft")
      assert.deepStrictEqual(yield* paid, [])
    }).pipe(Effect.provide(onSim)))

  it.live("is not collected once it is finalized either, until we ask", () =>
    Effect.gen(function*() {
      const { confirm, create, prepare, retrieve } = yield* gateway
      const { id } = yield* create(order, "")
      yield* prepare!(order, id, "")
      yield* aMonth
      assert.strictEqual((yield* retrieve(order, id)).status, "unconfirmed")
      assert.deepStrictEqual(yield* paid, [])
      yield* confirm(order, { id, attempt: 1, paymentMethod: "pm_card_visa", keySuffix: "" })
      assert.deepStrictEqual(yield* paid, [[1, 1234]])
    }).pipe(Effect.provide(onSim)))
})

/** What the customer has at Stripe from now on: less than 0 is a credit, more is owed. */
const haveBalance = (balance: number) => elsewhere((stripe) => stripe.customers.update("cus_1", { balance }))
const balance = Effect.map(elsewhere((stripe) => stripe.customers.retrieve("cus_1")), (customer) => customer.deleted ? undefined : customer.balance)

describe("a balance of the customer, which would make the payment another than the charge,", () => {
  for (const [name, balanceMinor, dueMinor] of [["pays a part", -300, 934], ["pays all of it", -5000, 0], ["is owed and added", 300, 1534]] as const) {
    it.live(`shows while it is untouched, and nothing is finalized: it ${name}`, () =>
      Effect.gen(function*() {
        const { create, prepare } = yield* gateway
        yield* haveBalance(balanceMinor)
        const { id } = yield* create(order, "")
        assert.deepInclude(yield* prepare!(order, id, ""), { id, status: "unconfirmed", amountMinor: dueMinor })
        assert.strictEqual((yield* elsewhere((stripe) => stripe.invoices.retrieve(id))).status, "draft")
        assert.strictEqual(yield* balance, balanceMinor)
      }).pipe(Effect.provide(onSim)))

    it.live(`shows before anything is paid where it came after the last look at the draft: it ${name}`, () =>
      Effect.gen(function*() {
        const client = yield* StripeClient
        // The balance arrives as the draft is about to be finalized.
        const overtaken = StripeClient.of({
          ...client,
          call: (operation, ...rest) => Effect.andThen(operation === "finalize" ? haveBalance(balanceMinor) : Effect.void, client.call(operation, ...rest)) as never
        })
        const payment = yield* Effect.gen(function*() {
          const { create, prepare } = yield* gateway
          return yield* prepare!(order, (yield* create(order, "")).id, "")
        }).pipe(Effect.provide(StripeGateway.layerInvoicesWith()), Effect.provideService(StripeClient, overtaken))
        assert.deepInclude(payment, { status: dueMinor === 0 ? "succeeded" : "unconfirmed", amountMinor: dueMinor, amountReceivedMinor: 0 })
        assert.deepInclude(yield* (yield* gateway).retrieve(order, payment.id), { amountMinor: dueMinor, amountReceivedMinor: 0 })
        assert.deepStrictEqual(yield* paid, [])
      }).pipe(Effect.provide(onSim)))
  }
})
