/** Every way round the cap that is known, each as a hostile client would try it. The judge is the simulator: what reached it, and what was paid. */
import { assert, describe, it, layer } from "@effect/vitest"
import { DatabaseClock } from "@purser/postgres"
import { ProxyServer, VaultAdmin } from "@purser/spend-cap-proxy"
import { StripeSim } from "@purser/stripe-sim"
import { Effect } from "effect"
import { gzipSync } from "node:zlib"
import { call, chargeForm, databases, makeVault, paid, raw, type RawOptions, realKey, refusal, sdk, trailOf, used, world } from "./support/world.ts"

const reached = Effect.map(Effect.flatMap(StripeSim, (sim) => sim.requests), (requests) => requests.length)

/** A request that must be refused with this status and code, and must not reach Stripe. */
const refusedCase = (name: string, path: string, options: RawOptions, status: number, code: string | null, allow: ReadonlyArray<string> = []) =>
  [name, path, options, status, code, allow] as const

const form = (body: string | Buffer, headers: Record<string, string> = {}): RawOptions => ({ key: "k", body, headers })
const rest = "&currency=usd&customer=cus_1"
const amounts: ReadonlyArray<readonly [string, string]> = [
  ["repeated", `amount=100&amount=999999${rest}`],
  ["bracketed", `amount[]=100${rest}`],
  ["bracketed beside a plain one", `amount=100&amount[]=5${rest}`],
  ["indexed", `amount[0]=100${rest}`],
  ["bracketed, encoded", `amount%5B%5D=100&amount=1${rest}`],
  ["in leading brackets", `[amount]=999999&amount=100${rest}`],
  ["in capitals", `Amount=999999&amount=100${rest}`],
  ["with a space before its name", `%20amount=999999&amount=100${rest}`],
  ["with a zero byte", `amount%00=999999&amount=100${rest}`],
  ["in letters that normalise", `%EF%BD%81mount=999999&amount=100${rest}`],
  ["with decimals", `amount=100.0${rest}`],
  ["with an exponent", `amount=1e3${rest}`],
  ["with a sign", `amount=%2B100${rest}`],
  ["negative", `amount=-100${rest}`],
  ["zero", `amount=0${rest}`],
  ["with a leading zero", `amount=0100${rest}`],
  ["with white space", `amount=%20100${rest}`],
  ["in hexadecimal", `amount=0x64${rest}`],
  ["in other digits", `amount=%D9%A1%D9%A0%D9%A0${rest}`],
  ["of thirteen digits", `amount=1000000000000${rest}`],
  ["empty", `amount=${rest}`],
  ["absent", "currency=usd&customer=cus_1"],
  ["hidden behind a semicolon", `description=x;amount=999999&amount=100${rest}`],
  ["with another amount", `amount=100&amount_to_capture=999999${rest}`],
  ["in a form that is not UTF-8", `amount=100&description=%FF${rest}`]
]

const closed = (name: string, path: string, method = "POST") =>
  refusedCase(name, path, { ...(method === "DELETE" ? { key: "k" } : form(chargeForm(100))), method }, 403, "endpoint_not_allowed")

const cases = [
  ...amounts.map(([name, body]) => refusedCase(`an amount ${name}`, "/v1/charges", form(body), 400, null)),
  refusedCase("a second currency", "/v1/charges", form("amount=100&currency=usd&currency=jpy&customer=cus_1"), 400, "parameter_repeated"),
  refusedCase("a bracketed customer", "/v1/charges", form("amount=100&currency=usd&customer[]=cus_1"), 400, "parameter_odd"),
  refusedCase("both kinds of customer", "/v1/charges", form(`amount=100${rest}&customer_account=acct_1`), 400, "parameter_odd"),
  refusedCase("an amount in the URL", "/v1/charges?amount=999999", form(chargeForm(100)), 400, "query_not_allowed"),
  refusedCase("JSON", "/v1/charges", form("{\"amount\":999999}", { "content-type": "application/json" }), 400, "form_type"),
  refusedCase("multipart", "/v1/charges", form(chargeForm(100), { "content-type": "multipart/form-data; boundary=x" }), 400, "form_type"),
  refusedCase("another charset", "/v1/charges", form(chargeForm(100), { "content-type": "application/x-www-form-urlencoded; charset=utf-16" }), 400, "form_type"),
  refusedCase("a compressed body", "/v1/charges", form(gzipSync(chargeForm(100)), { "content-encoding": "gzip" }), 400, "form_encoded"),
  refusedCase("an overridden method", "/v1/charges", form(chargeForm(100), { "x-http-method-override": "PUT" }), 400, "method_override"),
  refusedCase("no idempotency key", "/v1/charges", { body: chargeForm(100) }, 400, "idempotency_key_missing"),
  refusedCase("two idempotency keys", "/v1/charges", { body: chargeForm(100), headers: { "idempotency-key": ["a", "b"] } }, 400, "idempotency_key_invalid"),
  refusedCase("an idempotency key without end", "/v1/charges", { body: chargeForm(100), key: "k".repeat(256) }, 400, "idempotency_key_invalid"),
  refusedCase("another currency", "/v1/charges", form("amount=100&currency=eur&customer=cus_1"), 403, "currency_not_allowed"),
  refusedCase("no currency", "/v1/charges", form("amount=100&customer=cus_1"), 403, "currency_not_allowed"),
  refusedCase("an update of an intent, not listed", "/v1/payment_intents/pi_1", form("amount=5000"), 403, "endpoint_not_allowed"),
  refusedCase("an update of the amount, listed", "/v1/payment_intents/pi_1", form("amount=5000"), 400, "parameter_not_allowed", ["POST:/v1/payment_intents/*"]),
  refusedCase("an update that confirms, listed", "/v1/payment_intents/pi_1", form("confirm=true"), 400, "parameter_not_allowed", ["POST:/v1/payment_intents/*"]),
  refusedCase("an update of the customer, listed", "/v1/payment_intents/pi_1", form("customer=cus_2"), 400, "parameter_not_allowed", ["POST:/v1/payment_intents/*"]),
  refusedCase("a confirmation with an amount", "/v1/payment_intents/pi_1/confirm", form("amount=5000"), 400, "parameter_not_allowed"),
  refusedCase("a confirmation with an amount to capture", "/v1/payment_intents/pi_1/confirm", form("amount_to_capture=5000"), 400, "parameter_not_allowed"),
  closed("a capture", "/v1/payment_intents/pi_1/capture"),
  closed("a capture of a charge", "/v1/charges/ch_1/capture"),
  closed("an increment", "/v1/payment_intents/pi_1/increment_authorization"),
  closed("an invoice", "/v1/invoices"),
  closed("paying an invoice", "/v1/invoices/in_1/pay"),
  closed("an invoice item", "/v1/invoiceitems"),
  closed("a subscription", "/v1/subscriptions"),
  closed("a checkout session", "/v1/checkout/sessions"),
  closed("a payment link", "/v1/payment_links"),
  closed("a payout", "/v1/payouts"),
  closed("a transfer", "/v1/transfers"),
  closed("a refund, not listed", "/v1/refunds"),
  closed("an API key", "/v1/ephemeral_keys"),
  closed("the second API", "/v2/money_management/outbound_payments"),
  closed("a path that climbs to another", "/v1/charges/../payouts"),
  closed("a path in capitals", "/V1/charges"),
  closed("an encoded slash, twice", "/v1%252fcharges"),
  closed("an encoded zero byte", "/v1/charges%00"),
  closed("a parameter in the path", "/v1/charges;x=1"),
  closed("a backslash", "/v1\\charges"),
  closed("another host in the request line", "http://evil.example/v1/charges"),
  closed("a host without a scheme", "//evil.example/v1/charges"),
  closed("PUT", "/v1/charges", "PUT"),
  closed("DELETE", "/v1/customers/cus_1", "DELETE")
]

const [[, database]] = databases

layer(world(database), { excludeTestServices: true })("refused before anything is sent", (it) => {
  it.effect.each(cases)("%s", ([, path, options, status, code, allow]) =>
    Effect.gen(function*() {
      const { id, key: vaultKey } = yield* makeVault({ allow })
      const before = yield* reached
      const got = yield* raw(yield* ProxyServer, path, { ...options, vaultKey })
      assert.strictEqual(got.status, status, JSON.stringify(got.json))
      if (code !== null) assert.strictEqual(got.json.error.code, code)
      assert.strictEqual(got.json.error.type, "invalid_request_error")
      assert.strictEqual(got.headers["stripe-should-retry"], "false")
      assert.match(String(got.headers["request-id"]), /^req_proxy_/)
      assert.strictEqual(yield* reached, before)
      assert.deepStrictEqual(yield* used(id), { heldMinor: 0, paidMinor: 0, payments: 0, calls: 0 })
      // The refusal is on the trail with what was asked.
      const [created, line] = yield* trailOf(id)
      assert.strictEqual(created?.act, "created")
      assert.strictEqual(line?.verdict, "refused")
    }))

  it.effect.each([
    ["doubled slashes", "//v1//charges"],
    ["a slash at the end", "/v1/charges/"],
    ["dots", "/v1/./charges"],
    ["a way up and down", "/v1/payouts/../charges"],
    ["encoded letters", "/%76%31/%63harges"],
    ["an encoded slash", "/v1%2fcharges"]
  ] as const)("a path spelled with %s is the path that it means, for the rules and for Stripe", ([, path]) =>
    Effect.gen(function*() {
      const { id, key: vaultKey } = yield* makeVault()
      // As an absolute path: what begins with two slashes names no host here.
      const got = yield* raw(yield* ProxyServer, path, { vaultKey, key: `spell-${path}`, body: chargeForm(100) })
      assert.strictEqual(got.status, 200)
      assert.strictEqual((yield* used(id)).paidMinor, 100)
      assert.strictEqual((yield* (yield* StripeSim).requests).at(-1)?.path, "/v1/charges")
    }))

  it.effect.each([
    "POST:/v1/invoices/*/pay", "POST:/v1/*", "POST:/v1/payouts", "POST:/v1/subscriptions", "POST:/v1/payment_intents/*/capture", "POST:/v1/**", "GET:/v2/core/events",
    "PUT:/v1/charges", "/v1/charges", "POST:v1/charges"
  ])("%s cannot be listed", (entry) =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(makeVault({ allow: [entry] }))
      assert.strictEqual(error.reason._tag, "VaultRefused")
    }))

  it.effect("no key, an unknown key and the real key open nothing", () =>
    Effect.gen(function*() {
      const proxy = yield* ProxyServer
      const before = yield* reached
      for (const vaultKey of [undefined, "vk_000000000000000000000000000000000000000000000000", "sk_test_other", realKey]) {
        const got = yield* raw(proxy, "/v1/charges", { vaultKey, key: "k", body: chargeForm(100) })
        assert.strictEqual(got.status, 401)
        assert.strictEqual(got.json.error.type, "invalid_request_error")
      }
      assert.strictEqual(yield* reached, before)
    }))

  it.effect("a used key with other parameters, another endpoint or another account is Stripe's 400", () =>
    Effect.gen(function*() {
      const proxy = yield* ProxyServer
      const { id, key: vaultKey } = yield* makeVault()
      const send = (path: string, body: string, headers: Record<string, string> = {}) => raw(proxy, path, { vaultKey, key: "used", body, headers })
      assert.strictEqual((yield* send("/v1/charges", chargeForm(100))).status, 200)
      const before = yield* reached
      for (const got of [
        yield* send("/v1/charges", chargeForm(101)),
        yield* send("/v1/payment_intents", chargeForm(100)),
        yield* send("/v1/charges", chargeForm(100), { "stripe-account": "acct_other" }),
        yield* send("/v1/charges", chargeForm(100), { "stripe-context": "ctx_other" })
      ]) {
        assert.strictEqual(got.status, 400)
        assert.strictEqual(got.json.error.type, "idempotency_error")
      }
      assert.strictEqual(yield* reached, before)
      // The same parameters in another order are the same call.
      const again = yield* send("/v1/charges", chargeForm(100).split("&").toReversed().join("&"))
      assert.strictEqual(again.headers["idempotent-replayed"], "true")
      assert.deepStrictEqual(yield* used(id), { heldMinor: 0, paidMinor: 100, payments: 1, calls: 1 })
    }))

  it.effect("an intent counts from its creation, once, and is settled by its confirmation", () =>
    Effect.gen(function*() {
      const proxy = yield* ProxyServer
      const { id, key } = yield* makeVault()
      const stripe = sdk(key, proxy)
      const create = (idempotencyKey: string, amount = 600) =>
        stripe.paymentIntents.create({ amount, currency: "usd", customer: "cus_1", allowed_payment_method_types: ["card"] }, { idempotencyKey })
      const intent = yield* call(() => create("i1"))
      assert.deepStrictEqual(yield* used(id), { heldMinor: 600, paidMinor: 0, payments: 0, calls: 1 })
      assert.strictEqual((yield* refusal(() => create("i2", 501))).code, "spend_cap_exceeded")
      const confirm = (idempotencyKey: string, payment_method: string) =>
        stripe.paymentIntents.confirm(intent.id, { payment_method, off_session: true }, { idempotencyKey })
      // A decline proves nothing: the holder of the client secret may still confirm.
      assert.strictEqual((yield* refusal(() => confirm("i1c1", "pm_card_visa_chargeDeclined"))).type, "StripeCardError")
      assert.deepStrictEqual(yield* used(id), { heldMinor: 600, paidMinor: 0, payments: 0, calls: 2 })
      assert.strictEqual((yield* call(() => confirm("i1c2", "pm_card_visa"))).status, "succeeded")
      assert.deepStrictEqual(yield* used(id), { heldMinor: 0, paidMinor: 600, payments: 1, calls: 3 })
      assert.strictEqual((yield* refusal(() => confirm("i1c3", "pm_card_visa"))).code, "payment_intent_unexpected_state")
      assert.deepStrictEqual(yield* used(id), { heldMinor: 0, paidMinor: 600, payments: 1, calls: 4 })
    }))

  it.effect("a canceled intent gives its room back, and only that", () =>
    Effect.gen(function*() {
      const { id, key } = yield* makeVault()
      const stripe = sdk(key, yield* ProxyServer)
      const intent = yield* call(() => stripe.paymentIntents.create({ amount: 1100, currency: "usd", allowed_payment_method_types: ["card"] }, { idempotencyKey: "x1" }))
      assert.strictEqual((yield* used(id)).heldMinor, 1100)
      yield* call(() => stripe.paymentIntents.cancel(intent.id))
      assert.strictEqual((yield* used(id)).heldMinor, 0)
      yield* call(() => stripe.paymentIntents.create({ amount: 1100, currency: "usd", allowed_payment_method_types: ["card"] }, { idempotencyKey: "x2" }))
      assert.strictEqual((yield* used(id)).heldMinor, 1100)
    }))

  it.effect("an intent that another key made is fetched, and counted before it is confirmed", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim
      const direct = sdk("sk_test_other", sim)
      const { id, key } = yield* makeVault()
      const stripe = sdk(key, yield* ProxyServer)
      const make = (amount: number, currency: string) =>
        call(() => direct.paymentIntents.create({ amount, currency, customer: "cus_1", payment_method: "pm_card_visa", allowed_payment_method_types: ["card"] }))
      const confirm = (intent: { readonly id: string }) => () => stripe.paymentIntents.confirm(intent.id, { off_session: true }, { idempotencyKey: `c-${intent.id}` })
      const large = yield* make(1101, "usd")
      assert.strictEqual((yield* refusal(confirm(large))).code, "spend_cap_exceeded")
      const euros = yield* make(100, "eur")
      assert.strictEqual((yield* refusal(confirm(euros))).code, "currency_not_allowed")
      const small = yield* make(700, "usd")
      assert.strictEqual((yield* call(confirm(small))).status, "succeeded")
      assert.strictEqual((yield* used(id)).paidMinor, 700)
      const more = yield* make(700, "usd")
      assert.strictEqual((yield* refusal(confirm(more))).code, "spend_cap_exceeded")
      assert.strictEqual((yield* refusal(confirm({ id: "pi_nowhere" }))).code, "resource_missing")
      assert.strictEqual((yield* used(id)).paidMinor, 700)
    }))

  it.effect("a list of customers, a largest charge and a number of calls hold", () =>
    Effect.gen(function*() {
      const proxy = yield* ProxyServer
      const { key } = yield* makeVault({ customers: ["cus_1"], maxPerChargeMinor: 300, maxCalls: 2 })
      const send = (idempotencyKey: string, body: string) => raw(proxy, "/v1/charges", { vaultKey: key, key: idempotencyKey, body })
      assert.strictEqual((yield* send("l1", "amount=100&currency=usd&customer=cus_2")).json.error.code, "customer_not_allowed")
      assert.strictEqual((yield* send("l2", "amount=100&currency=usd&source=tok_visa")).json.error.code, "customer_not_allowed")
      assert.strictEqual((yield* send("l3", chargeForm(301))).json.error.code, "charge_too_large")
      assert.strictEqual((yield* send("l4", chargeForm(300))).status, 200)
      assert.strictEqual((yield* send("l5", chargeForm(300))).status, 200)
      assert.strictEqual((yield* send("l6", chargeForm(300))).json.error.code, "call_limit_reached")
      // A replay was counted before.
      assert.strictEqual((yield* send("l5", chargeForm(300))).headers["idempotent-replayed"], "true")
    }))

  it.effect("revoking, raising, expiring and the kill switch hold from the next call on", () =>
    Effect.gen(function*() {
      const admin = yield* VaultAdmin
      const proxy = yield* ProxyServer
      const { id, key: vaultKey } = yield* makeVault()
      let count = 0
      const charge = (key = vaultKey, amount = 500) =>
        Effect.map(raw(proxy, "/v1/charges", { vaultKey: key, key: `${id}-${count += 1}`, body: chargeForm(amount) }), ({ json, status }) => json.error?.code ?? status)
      assert.strictEqual(yield* charge(), 200)
      assert.strictEqual(yield* charge(), 200)
      assert.strictEqual(yield* charge(), "spend_cap_exceeded")
      // Never below what is paid and held; and the headroom stays what it was.
      assert.include((yield* Effect.flip(admin.raise({ id, expectedMinor: 900, headroomPercent: 100, reason: "less" }))).message, "cannot be lower")
      assert.strictEqual((yield* admin.raise({ id, expectedMinor: 1000, headroomPercent: 105, reason: "narrow" })).capMinor, 1050)
      assert.strictEqual((yield* admin.raise({ id, expectedMinor: 2000, headroomPercent: null, reason: "more customers" })).capMinor, 2100)
      const raised = (yield* admin.log({ vault: id, after: 0, limit: 100 })).filter(({ act }) => act === "raised")
      assert.deepStrictEqual(raised.map(({ amountMinor, detail }) => [amountMinor, detail]), [
        [1050, "narrow (the cap was 1100, in minor units)"], [2100, "more customers (the cap was 1050, in minor units)"]
      ])
      assert.isTrue(raised.every(({ atMs }) => Number.isInteger(atMs)))
      assert.strictEqual(yield* charge(), 200)
      assert.strictEqual((yield* Effect.flip(admin.raise({ id, expectedMinor: 3000, headroomPercent: 110, reason: " " }))).reason._tag, "VaultRefused")
      assert.isTrue(yield* admin.setKilled(true, "alarm"))
      assert.isFalse(yield* admin.setKilled(true, "alarm again"))
      assert.strictEqual(yield* charge(), "vault_kill_switch")
      assert.strictEqual((yield* raw(proxy, "/v1/charges", { vaultKey })).json.error.code, "vault_kill_switch")
      yield* admin.setKilled(false, "over")
      assert.strictEqual(yield* charge(), 200)
      yield* admin.revoke(id, "leaked")
      assert.strictEqual(yield* charge(), "vault_key_revoked")
      assert.strictEqual((yield* Effect.flip(admin.revoke("vault_none", ""))).reason._tag, "VaultMissing")
      const ended = yield* makeVault({ expiresAtMs: Math.floor(yield* DatabaseClock.nowMs) - 1000 })
      assert.strictEqual(yield* charge(ended.key), "vault_key_expired")
    }))

  it.effect("a refund, listed, gives no room back and stays below what was paid", () =>
    Effect.gen(function*() {
      const proxy = yield* ProxyServer
      const { id, key: vaultKey } = yield* makeVault({ allow: ["POST:/v1/charges", "POST:/v1/refunds"] })
      const charge = yield* raw(proxy, "/v1/charges", { vaultKey, key: "r1", body: chargeForm(1000) })
      const refund = (key: string, amount: number) =>
        Effect.map(raw(proxy, "/v1/refunds", { vaultKey, key, body: `charge=${charge.json.id}&amount=${amount}` }), ({ json, status }) => json.error?.code ?? status)
      assert.strictEqual(yield* refund("r2", 1001), "refund_limit_exceeded")
      const before = yield* reached
      yield* refund("r3", 600)
      assert.strictEqual(yield* reached, before + 1)
      assert.strictEqual(yield* refund("r4", 500), "refund_limit_exceeded")
      assert.strictEqual((yield* used(id)).paidMinor, 1000)
      assert.strictEqual((yield* raw(proxy, "/v1/charges", { vaultKey, key: "r5", body: chargeForm(200) })).json.error.code, "spend_cap_exceeded")
    }))

  it.effect("a vault key that stands where none belongs is not kept", () =>
    Effect.gen(function*() {
      const proxy = yield* ProxyServer
      const { id, key: vaultKey } = yield* makeVault()
      const got = [
        yield* raw(proxy, "/v1/charges", { vaultKey, key: vaultKey, body: chargeForm(100) }),
        yield* raw(proxy, "/v1/charges", { vaultKey, key: "pasted", body: `amount=100&currency=usd&customer=${vaultKey}` }),
        yield* raw(proxy, `/v1/charges/${vaultKey}`, { vaultKey, key: vaultKey })
      ]
      assert.deepStrictEqual(got.map(({ status }) => status), [400, 400, 404])
      const trail = JSON.stringify(yield* trailOf(id))
      assert.notInclude(trail, vaultKey)
      assert.include(trail, "vk_…")
    }))

  it.effect("room in doubt is released by hand, with a reason; its key is stopped, and the customer may be charged again", () =>
    Effect.gen(function*() {
      const proxy = yield* ProxyServer
      const sim = yield* StripeSim
      const admin = yield* VaultAdmin
      const { id, key: vaultKey } = yield* makeVault({ duplicateGuard: true })
      yield* sim.faults.add({ match: { path: "/v1/charges" }, action: { kind: "reset", at: "before" } })
      const charge = (key: string) => raw(proxy, "/v1/charges", { vaultKey, key: `${id}-${key}`, body: "amount=600&currency=usd&customer=cus_doubt" })
      yield* Effect.flip(charge("1"))
      assert.strictEqual((yield* used(id)).heldMinor, 600)
      assert.strictEqual((yield* Effect.flip(admin.release({ id, customer: "cus_doubt", reason: " " }))).reason._tag, "VaultRefused")
      assert.include((yield* Effect.flip(admin.release({ id, customer: "cus_none", reason: "x" }))).message, "holds nothing")
      assert.strictEqual((yield* admin.release({ id, customer: "cus_doubt", reason: "no charge in the Dashboard" })).heldMinor, 0)
      const line = (yield* admin.log({ vault: id, after: 0, limit: 100 })).find(({ act }) => act === "released")
      assert.deepStrictEqual([line?.amountMinor, line?.customer, line?.detail], [600, "cus_doubt", "no charge in the Dashboard"])
      assert.strictEqual((yield* charge("1")).json.error.code, "idempotency_key_stopped")
      assert.strictEqual((yield* charge("2")).status, 200)
      assert.deepStrictEqual(yield* used(id), { heldMinor: 0, paidMinor: 600, payments: 1, calls: 2 })
    }))

  it.effect("the cap of 0.33 is 0.36: integers, no float", () =>
    Effect.gen(function*() {
      const { id } = yield* makeVault({ expectedMinor: 33 })
      assert.strictEqual((yield* (yield* VaultAdmin).show(id)).capMinor, 36)
    }))
})

describe("an idempotency key that Stripe has forgotten", () => {
  it.live("is a new payment, and is counted again", () =>
    Effect.gen(function*() {
      const proxy = yield* ProxyServer
      const { id, key: vaultKey } = yield* makeVault()
      const charge = (amount = 600) => raw(proxy, "/v1/charges", { vaultKey, key: "old", body: chargeForm(amount) })
      assert.strictEqual((yield* charge()).status, 200)
      assert.strictEqual((yield* charge()).headers["idempotent-replayed"], "true")
      yield* DatabaseClock.advance("25 hours")
      yield* (yield* StripeSim).advanceClock("25 hours")
      const got = yield* charge()
      assert.strictEqual(got.json.error.code, "spend_cap_exceeded")
      assert.deepStrictEqual(yield* paid, { payments: 1, amountMinor: 600 })
      assert.strictEqual((yield* charge(500)).status, 200)
      assert.deepStrictEqual(yield* used(id), { heldMinor: 0, paidMinor: 1100, payments: 2, calls: 2 })
    }).pipe(Effect.provide(world(database))))
})
