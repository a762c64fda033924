import { Database } from "@purser/postgres"
import { ProxyDatabase, ProxyServer, VaultAdmin, VaultDesk } from "@purser/spend-cap-proxy"
import { StripeSim } from "@purser/stripe-sim"
import { Console, Effect, Layer, Redacted } from "effect"
import { Stripe } from "stripe"

const program = Effect.gen(function*() {
  const { host, port } = yield* ProxyServer
  const { key } = yield* (yield* VaultAdmin).create({
    name: "july", billingPeriod: "2026-07", currency: "usd", expectedMinor: 10_000, headroomPercent: 110, allow: [], customers: null,
    maxPerChargeMinor: null, maxCalls: null, duplicateGuard: true, expiresAtMs: null
  })
  // Any SDK: the proxy's host, and the vault key where a Stripe key goes.
  const stripe = new Stripe(Redacted.value(key), { host, port, protocol: "http", telemetry: false })
  const charge = (customer: string, amount: number, idempotencyKey: string) =>
    Effect.promise(() =>
      stripe.charges.create({ amount, currency: "usd", customer }, { idempotencyKey }).then(
        ({ status }) => status as string,
        (error: Stripe.errors.StripeError) => `${error.type} ${error.code}`
      ))
  yield* Console.log(yield* charge("cus_a", 9_000, "a-1"))
  yield* Console.log(yield* charge("cus_a", 9_000, "a-2"), "(the first one's answer)")
  yield* Console.log(yield* charge("cus_b", 9_000, "b-1"))
  const paid = (yield* (yield* StripeSim).books).reduce((sum, { payments }) => sum + payments, 0)
  yield* Console.log(`${paid} payment`)
})

const Proxy = Layer.unwrap(Effect.map(StripeSim, ({ url }) =>
  ProxyServer.layer({ stripeKey: Redacted.make("rk_test_example"), upstream: url, port: 0 })))

program.pipe(
  Effect.provide(Proxy.pipe(
    Layer.provideMerge(VaultDesk.layerStores),
    Layer.provideMerge(ProxyDatabase.migrated(Database.layerMemory)),
    Layer.provideMerge(StripeSim.layer())
  )),
  Effect.runPromise
)
