/**
 * An agent that may spend money by itself, within what was granted: it holds a vault key and no key of Stripe's. What it asks for
 * beyond the grant is refused at the proxy, however it asks. Here a simulator stands in for Stripe.
 *
 *     node examples/agent.ts
 */
import { Database } from "@purser/postgres"
import { ProxyDatabase, ProxyServer, VaultAdmin, VaultDesk } from "@purser/spend-cap-proxy"
import { StripeSim } from "@purser/stripe-sim"
import { Console, Effect, Layer, Redacted } from "effect"
import { Stripe } from "stripe"

/** What a model would call as a tool. It knows the proxy's address and the vault key, and nothing of what the key may do. */
const payingTool = (key: string, host: string, port: number) => {
  const stripe = new Stripe(key, { host, port, protocol: "http", telemetry: false })
  return {
    pay: (customer: string, amount: number, idempotencyKey: string) =>
      Effect.promise(() =>
        stripe.paymentIntents.create(
          { amount, currency: "usd", customer, payment_method: "pm_card_visa", confirm: true, off_session: true, allowed_payment_method_types: ["card"] },
          { idempotencyKey }
        ).then(({ status }) => status as string, (error: Stripe.errors.StripeError) => `refused: ${error.code}`)
      ),
    payOut: (amount: number) =>
      Effect.promise(() => stripe.payouts.create({ amount, currency: "usd" }, { idempotencyKey: "payout" }).then(() => "paid out", (error: Stripe.errors.StripeError) => `refused: ${error.code}`))
  }
}

const program = Effect.gen(function*() {
  // A person grants: 100.00 usd in July, with a headroom of nothing, 60.00 at the most at once, one payment for each customer.
  const desk = yield* VaultAdmin
  const { key, vault } = yield* desk.create({
    name: "buyer", billingPeriod: "2026-07", currency: "usd", expectedMinor: 10_000, headroomPercent: 100, allow: [], customers: null,
    maxPerChargeMinor: 6000, maxCalls: null, duplicateGuard: true, expiresAtMs: null
  })
  const { host, port } = yield* ProxyServer
  const agent = payingTool(Redacted.value(key), host, port)

  yield* Console.log("40.00 for a:          ", yield* agent.pay("cus_a", 4000, "a-1"))
  yield* Console.log("the same, a new key:  ", yield* agent.pay("cus_a", 4000, "a-2"), "(the first one's answer)")
  yield* Console.log("75.00 for b:          ", yield* agent.pay("cus_b", 7500, "b-1"))
  yield* Console.log("60.00 for b:          ", yield* agent.pay("cus_b", 6000, "b-2"))
  yield* Console.log("0.50 for c:           ", yield* agent.pay("cus_c", 50, "c-1"))
  yield* Console.log("a payout:             ", yield* agent.payOut(4000))
  yield* desk.revoke(vault.id, "the month is over")
  yield* Console.log("0.50 for c, revoked:  ", yield* agent.pay("cus_c", 50, "c-2"))

  const books = yield* (yield* StripeSim).books
  yield* Console.log("paid, by the books:   ", books.reduce((sum, { amountMinor, payments }) => sum + amountMinor * payments, 0), "minor units")
})

const Proxy = Layer.unwrap(Effect.map(StripeSim, ({ url }) =>
  ProxyServer.layer({ stripeKey: Redacted.make("rk_test_example"), upstream: url, port: 0 })))

await program.pipe(
  Effect.provide(Proxy.pipe(
    Layer.provideMerge(VaultDesk.layerStores),
    Layer.provideMerge(ProxyDatabase.migrated(Database.layerMemory)),
    Layer.provideMerge(StripeSim.layer())
  )),
  Effect.runPromise
)
