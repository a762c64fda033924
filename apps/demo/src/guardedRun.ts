/**
 * Three naive workers that charge the same customers, each with a new idempotency key for every try: at Stripe itself, and
 * unmodified through the spend-cap proxy with the duplicate guard. Only host and key differ.
 */
import { Database } from "@purser/postgres"
import { ProxyDatabase, ProxyServer, VaultAdmin, VaultDesk } from "@purser/spend-cap-proxy"
import { StripeSim } from "@purser/stripe-sim"
import { Effect, Layer, Redacted } from "effect"
import { randomUUID } from "node:crypto"

const workers = 3
const amountMinor = 4200
// Stripe answers the first call for each customer later than the client waits.
const patienceMs = 150
const patienceMaxMs = 10_000
const lateMs = 400

/** How it ended, by the simulator's books. */
export interface GuardedReport {
  readonly customers: number
  readonly paymentsWithout: number
  readonly paymentsThrough: number
}

/** What many billing scripts do, in Python as here: a time-out, another try, and `uuid4()` for the key. */
const chargeWithRetries = (url: string, key: string, customer: string, period: string, tries = 1): Promise<void> =>
  fetch(`${url}/v1/charges`, {
    method: "POST",
    headers: { "Authorization": `Bearer ${key}`, "Idempotency-Key": randomUUID() },
    body: new URLSearchParams({
      "amount": String(amountMinor), "currency": "usd", "customer": `cus_${customer}`, "metadata[customer_id]": customer, "metadata[billing_period]": period
    }),
    signal: AbortSignal.timeout(Math.min(patienceMs * 2 ** (tries - 1), patienceMaxMs))
  }).then((response) => response.ok ? response.json() : Promise.reject(new Error(`status ${response.status}`))).then(
    () => undefined,
    (error: unknown) => tries < 20 ? chargeWithRetries(url, key, customer, period, tries + 1) : Promise.reject(error)
  )

const bill = Effect.fnUntraced(function*(url: string, key: string, customers: ReadonlyArray<string>, period: string) {
  const sim = yield* StripeSim
  yield* sim.faults.add(...customers.map((customer) => ({
    match: { path: "/v1/charges", metadata: { customer_id: customer, billing_period: period } }, action: { kind: "delay", at: "after", delayMs: lateMs } as const
  })))
  yield* Effect.forEach(Array.from({ length: workers }), () =>
    Effect.forEach(customers, (customer) => Effect.promise(() => chargeWithRetries(url, key, customer, period)), { concurrency: 4 }), { concurrency: "unbounded" })
  const books = (yield* sim.books).filter((entry) => entry.billingPeriod === period)
  return books.reduce((sum, { payments }) => sum + payments, 0)
})

/** A label of its own, so that the simulator's books tell these charges from the others. */
const guarded = "2026-07-guarded"

const Proxy = Layer.unwrap(Effect.map(StripeSim, ({ url }) => ProxyServer.layer({ stripeKey: Redacted.make("rk_test_demo"), upstream: url, port: 0 }))).pipe(
  Layer.provideMerge(VaultDesk.layerStores),
  Layer.provide(ProxyDatabase.migrated(Database.layerMemory))
)

/** Bills customers with three naive workers, without the proxy and through it. */
export const guardedRun = (count: number) =>
  Effect.gen(function*() {
    const sim = yield* StripeSim
    const customers = Array.from({ length: count }, (_, at) => `guard_${at}`)
    const paymentsWithout = yield* bill(sim.url, "sk_test_demo", customers, "2026-07-unguarded")
    const { url } = yield* ProxyServer
    const { key } = yield* (yield* VaultAdmin).create({
      name: "demo", billingPeriod: guarded, currency: "usd", expectedMinor: amountMinor * count, headroomPercent: 110, allow: [], customers: null,
      maxPerChargeMinor: null, maxCalls: null, duplicateGuard: true, expiresAtMs: null
    })
    const paymentsThrough = yield* bill(url, Redacted.value(key), customers, guarded)
    const report: GuardedReport = { customers: count, paymentsWithout, paymentsThrough }
    return report
  }).pipe(Effect.provide(Proxy))
