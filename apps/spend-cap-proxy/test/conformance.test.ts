/** Stripe's SDK through the proxy and without it: the same calls, the same faults, the same outcomes, to the header. */
import { assert, describe, it } from "@effect/vitest"
import { ProxyServer } from "@purser/spend-cap-proxy"
import { type Fault, StripeSim } from "@purser/stripe-sim"
import { Effect } from "effect"
import { Stripe } from "stripe"
import { databases, makeVault, world } from "./support/world.ts"

/** Ids and moments, in the order of their appearance. */
const normal = () => {
  const seen = new Map<string, string>()
  return (value: unknown): unknown =>
    JSON.parse(
      JSON.stringify(value ?? null)
        .replaceAll(/\b(pi|ch|cus|req|pm|evt|txn|re|in|il)_[A-Za-z0-9]+(?:_secret_[A-Za-z0-9]+)?/g, (id, prefix: string) => {
          if (!seen.has(id)) seen.set(id, `${prefix}#${seen.size}`)
          return seen.get(id)!
        })
        .replaceAll(/stripe-node-retry-[0-9a-f-]+/g, "stripe-node-retry")
        .replaceAll(/"(created|date|available_on|canceled_at)":\d+/g, "\"$1\":0")
        .replaceAll(/\b127\.0\.0\.1:\d+/g, "host")
    )
}

const headersOf = (headers: unknown) =>
  Object.fromEntries(Object.entries((headers ?? {}) as Record<string, string>).filter(([name]) => !["date", "keep-alive", "connection"].includes(name)))

type Step = (stripe: Stripe, ids: Record<string, string>) => Promise<unknown>

const intent = { amount: 1999, currency: "usd", customer: "cus_1", allowed_payment_method_types: ["card"], metadata: { customer_id: "c1", billing_period: "2026-07" } }
const makeIntent = (name: string): Step => async (stripe, ids) => {
  const made = await stripe.paymentIntents.create(intent, { idempotencyKey: `create-${name}` })
  ids[name] = made.id
  return made
}
const confirm = (name: string, payment_method: string, n = 1): Step => (stripe, ids) =>
  stripe.paymentIntents.confirm(ids[name]!, { payment_method, off_session: true }, { idempotencyKey: `confirm-${name}-${n}` })
const chargeOf = (customer: string, key: string, more: Partial<Stripe.ChargeCreateParams> = {}): Step => (stripe) =>
  stripe.charges.create({ amount: 700, currency: "usd", customer, metadata: { customer_id: customer, billing_period: "2026-07" }, ...more }, { idempotencyKey: key })

const fault = (path: string, action: Fault["action"], times = 1): Fault => ({ match: { path, times }, action })
const faulty = (name: string, action: Fault["action"], times = 1): readonly [string, ReadonlyArray<Fault>, Step] =>
  [`a charge with ${name}`, [fault("/v1/charges", action, times)], chargeOf(`cus_${name.replaceAll(/\W/g, "")}`, `fault-${name}`)]

const steps: ReadonlyArray<readonly [name: string, faults: ReadonlyArray<Fault>, step: Step]> = [
  ["create an intent", [], makeIntent("a")],
  ["create it again under its key", [], makeIntent("a")],
  ["read it", [], (stripe, ids) => stripe.paymentIntents.retrieve(ids["a"]!)],
  ["a decline", [], confirm("a", "pm_card_visa_chargeDeclined")],
  ["the same decline, replayed", [], confirm("a", "pm_card_visa_chargeDeclined")],
  ["confirm it", [], confirm("a", "pm_card_visa", 2)],
  ["confirm a paid one", [], confirm("a", "pm_card_visa", 3)],
  ["read it, expanded", [], (stripe, ids) => stripe.paymentIntents.retrieve(ids["a"]!, { expand: ["latest_charge", "customer"] })],
  ["create one to cancel", [], makeIntent("b")],
  ["cancel it", [], (stripe, ids) => stripe.paymentIntents.cancel(ids["b"]!, { cancellation_reason: "abandoned" })],
  ["confirm a canceled one", [], confirm("b", "pm_card_visa")],
  ["list", [], (stripe) => stripe.paymentIntents.list({ customer: "cus_1", limit: 2 })],
  ["list all by pages", [], async (stripe) => {
    const all: Array<string> = []
    for await (const one of stripe.paymentIntents.list({ limit: 1 })) all.push(one.id)
    return all
  }],
  ["create and confirm at once", [], (stripe) =>
    stripe.paymentIntents.create({ ...intent, payment_method: "pm_card_visa", confirm: true, off_session: true }, { idempotencyKey: "once" })],
  ["create and confirm at once, declined", [], (stripe) =>
    stripe.paymentIntents.create({ ...intent, payment_method: "pm_card_visa_chargeDeclinedInsufficientFunds", confirm: true, off_session: true }, { idempotencyKey: "once-declined" })],
  ["authentication", [], (stripe) =>
    stripe.paymentIntents.create({ ...intent, payment_method: "pm_card_authenticationRequired", confirm: true, off_session: true }, { idempotencyKey: "once-auth" })],
  ["charge", [], chargeOf("cus_1", "charge")],
  ["charge with a declined card", [], chargeOf("cus_1", "charge-declined", { source: "pm_card_visa_chargeDeclined" })],
  ["charge too little", [], chargeOf("cus_1", "charge-small", { amount: 1 })],
  ["charge with an unknown parameter", [], (stripe) =>
    stripe.charges.create({ amount: 700, currency: "usd", customer: "cus_1", nonsense: "1" } as Stripe.ChargeCreateParams, { idempotencyKey: "unknown" })],
  ["a missing object", [], (stripe) => stripe.charges.retrieve("ch_missing")],
  ["an endpoint that does not exist", [], (stripe) => stripe.rawRequest("GET", "/v1/nothing")],
  ["without a key of its own", [], (stripe) => stripe.charges.create({ amount: 700, currency: "usd", customer: "cus_2" })],
  ["with an API version", [], (stripe) => stripe.charges.create({ amount: 700, currency: "usd", customer: "cus_2" }, { apiVersion: "2026-10-28.endive", idempotencyKey: "version" })],
  faulty("a reset before", { kind: "reset", at: "before" }),
  faulty("a reset after", { kind: "reset", at: "after" }),
  faulty("resets that go on", { kind: "reset", at: "before" }, 9),
  faulty("a cut body", { kind: "truncate" }),
  faulty("a 500 that is not kept", { kind: "serverError", effect: "none", stored: false }),
  faulty("a 500 that is kept", { kind: "serverError", effect: "done", stored: true }),
  faulty("a 502 page", { kind: "badGateway", effect: "done" }),
  faulty("a 429", { kind: "rateLimited" }),
  faulty("a lock", { kind: "lockTimeout" }),
  faulty("a 409", { kind: "keyInUse" }),
  faulty("foreign JSON", { kind: "foreignJson", status: 403, effect: "none" }),
  faulty("a late answer", { kind: "delay", at: "after", delayMs: 30 })
]

/** Everything that a client can see of every step, and how often Stripe was asked for it. */
const observe = Effect.fnUntraced(function*(key: string, to: { readonly host: string; readonly port: number }, retries: number) {
  const sim = yield* StripeSim
  const stripe = new Stripe(key, { host: to.host, port: to.port, protocol: "http", telemetry: false, maxNetworkRetries: retries })
  const ids: Record<string, string> = {}
  const clean = normal()
  const seen: Array<unknown> = []
  for (const [name, faults, step] of steps) {
    yield* sim.faults.add(...faults)
    const before = (yield* sim.requests).length
    const outcome = yield* Effect.promise(() =>
      step(stripe, ids).then(
        (value) => {
          const { lastResponse } = (value ?? {}) as { lastResponse?: { statusCode: number; headers: unknown } }
          return { value, status: lastResponse?.statusCode, headers: headersOf(lastResponse?.headers) } as unknown
        },
        (error: Stripe.errors.StripeError) => ({
          class: error.constructor.name, type: error.type, code: error.code, rawType: error.rawType, status: error.statusCode,
          decline: error.decline_code, param: error.param, message: error.message, detail: (error as { detail?: { code?: string } }).detail?.code,
          intent: error.payment_intent, headers: headersOf(error.headers)
        })
      ))
    yield* sim.faults.clear
    seen.push({ name, requests: (yield* sim.requests).length - before, outcome: clean(outcome) })
  }
  return { seen, books: clean(yield* sim.books) }
})

const direct = (retries: number) =>
  Effect.flatMap(StripeSim, (sim) => observe("sk_test_direct", sim, retries)).pipe(Effect.provide(StripeSim.layer()))

const proxied = (retries: number) =>
  Effect.gen(function*() {
    const proxy = yield* ProxyServer
    const { key } = yield* makeVault({ expectedMinor: 10_000_000 })
    return yield* observe(key, proxy, retries)
  }).pipe(Effect.provide(world(databases[0][1])))

describe("Stripe's SDK", () => {
  it.live.each([0, 2])("sees through the proxy what it sees without it, with %i retries of its own", (retries) =>
    Effect.gen(function*() {
      const without = yield* direct(retries)
      const through = yield* proxied(retries)
      assert.strictEqual(without.seen.length, steps.length)
      for (const [at, expected] of without.seen.entries()) assert.deepStrictEqual(through.seen[at], expected)
      assert.deepStrictEqual(through.books, without.books)
    }), 120_000)
})
