import { assert, describe, it } from "@effect/vitest"
import { ChargeError, ChargeGateway } from "@purser/core"
import { Effect, Schema } from "effect"
import { answered, confirm, created, failing, http, orderFor, secret, visible } from "./support.ts"

const order = orderFor()
const intent = {
  object: "payment_intent",
  id: "pi_1",
  status: "succeeded",
  amount: 1234,
  amount_received: 1234,
  currency: "usd",
  customer: "cus_1",
  latest_charge: "ch_1",
  last_payment_error: null,
  client_secret: "pi_1_secret_Hush",
  metadata: { charge_key: order.chargeKey, generation: "1" }
}
const refusal = (type: string, more: Record<string, unknown> = {}) => ({ error: { type, message: "because", ...more } })
const invalid = "invalid_request_error"
const html = "<html><body>Bad Gateway</body></html>"

/** What `create` makes of an answer: the reason, the outcome and whether a repeat may help. */
const table: ReadonlyArray<readonly [name: string, bytes: string, reason: string, outcome: "unknown" | "not_charged"]> = [
  ["400", http(400, refusal(invalid, { code: "amount_too_small", param: "amount" })), "InvalidRequest", "not_charged"],
  ["404", http(404, refusal(invalid, { code: "resource_missing" })), "InvalidRequest", "not_charged"],
  ["401", http(401, refusal(invalid)), "PermissionDenied", "not_charged"],
  ["403", http(403, refusal(invalid, { code: "spend_cap_exceeded" })), "PermissionDenied", "not_charged"],
  ["idempotency_error", http(400, refusal("idempotency_error")), "KeyReused", "unknown"],
  ["409 key in use", http(409, refusal("idempotency_error", { code: "idempotency_key_in_use" })), "KeyInUse", "unknown"],
  ["409 key in use, old type", http(409, refusal(invalid, { code: "idempotency_key_in_use" })), "KeyInUse", "unknown"],
  ["409 lock_timeout", http(409, refusal(invalid, { code: "lock_timeout" })), "RateLimited", "not_charged"],
  ["429", http(429, refusal(invalid, { code: "rate_limit" })), "RateLimited", "not_charged"],
  ["429 lock_timeout", http(429, refusal(invalid, { code: "lock_timeout" })), "RateLimited", "not_charged"],
  ["400 rate_limit", http(400, refusal(invalid, { code: "rate_limit" })), "RateLimited", "not_charged"],
  ["400 lock_timeout", http(400, refusal(invalid, { code: "lock_timeout" })), "RateLimited", "not_charged"],
  ["500", http(500, refusal("api_error")), "GatewayUnavailable", "unknown"],
  ["500 without JSON", http(500, ""), "GatewayUnavailable", "unknown"],
  ["502 in HTML", http(502, html), "GatewayUnavailable", "unknown"],
  ["503 JSON without error", http(503, {}), "GatewayUnavailable", "unknown"],
  ["402 on create", http(402, refusal("card_error", { code: "card_declined" })), "UnexpectedAnswer", "unknown"],
  ["402 without error", http(402, {}), "UnexpectedAnswer", "unknown"],
  ["429 in HTML", http(429, html), "UnexpectedAnswer", "unknown"],
  ["404 in HTML", http(404, html), "UnexpectedAnswer", "unknown"],
  ["403 JSON without error", http(403, { message: "no" }), "UnexpectedAnswer", "unknown"],
  ["403 with a text as error", http(403, { error: "not permitted" }), "UnexpectedAnswer", "unknown"],
  ["400 with an error without type", http(400, { error: { message: "no" } }), "UnexpectedAnswer", "unknown"],
  ["400 with null", http(400, "null"), "UnexpectedAnswer", "unknown"],
  ["302", http(302, "", { location: "/" }), "UnexpectedAnswer", "unknown"],
  ["418", http(418, refusal(invalid)), "UnexpectedAnswer", "unknown"],
  ["200 in HTML", http(200, html), "UnexpectedAnswer", "unknown"],
  ["200 empty", http(200, ""), "UnexpectedAnswer", "unknown"],
  ["204", "HTTP/1.1 204 X\r\n\r\n", "UnexpectedAnswer", "unknown"],
  ["201 with an intent", http(201, intent), "UnexpectedAnswer", "unknown"],
  ["200 with an error", http(200, refusal(invalid)), "UnexpectedAnswer", "unknown"],
  ["200 with another object", http(200, { ...intent, object: "charge" }), "UnexpectedAnswer", "unknown"],
  ["200 without id", http(200, { ...intent, id: undefined }), "UnexpectedAnswer", "unknown"],
  ["200 with an unknown status", http(200, { ...intent, status: "requires_capture" }), "UnexpectedAnswer", "unknown"],
  ["200 with a broken amount", http(200, { ...intent, amount: 12.5 }), "UnexpectedAnswer", "unknown"],
  ["200 in an encoding", http(200, "\u001f\u008b", { "content-encoding": "gzip" }), "UnexpectedAnswer", "unknown"]
]

describe("an answer that is no payment intent", () => {
  for (const [name, bytes, reason, outcome] of table) {
    it.effect(`${name}: ${reason}, ${outcome}, one request`, () =>
      Effect.gen(function*() {
        const { requests, result } = yield* answered(bytes, failing(created(order)))
        assert.strictEqual(result._tag, "ChargeError")
        assert.strictEqual(result.reason._tag, reason)
        assert.strictEqual(result.outcome, outcome)
        assert.strictEqual(result.chargeKey, order.chargeKey)
        assert.strictEqual(requests.length, 1)
        if (name !== "204") assert.strictEqual(result.requestId, "req_stub")
        // It must be able to travel: the engine answers the sender with it.
        const wire = Schema.fromJsonString(Schema.toCodecJson(ChargeError))
        const text = yield* Schema.encodeEffect(wire)(result)
        assert.strictEqual((yield* Schema.decodeEffect(wire)(text)).message, result.message)
      }))
  }

  const only = <A>(tag: string, reason: { readonly _tag: string } & A): A => {
    assert.strictEqual(reason._tag, tag)
    return reason
  }

  it.effect("tells parameter and code of an invalid request", () =>
    Effect.gen(function*() {
      const { result } = yield* answered(http(400, refusal(invalid, { code: "amount_too_small", param: "amount" })), failing(created(order)))
      assert.deepInclude(only("InvalidRequest", result.reason), { code: "amount_too_small", param: "amount", detail: "because" })
    }))

  it.effect("tells when to come back and which limit it was", () =>
    Effect.gen(function*() {
      const headers = { "retry-after": "2", "stripe-rate-limited-reason": "endpoint-rate" }
      const { result } = yield* answered(http(429, refusal(invalid), headers), failing(created(order)))
      assert.deepInclude(only("RateLimited", result.reason), { retryAfterMs: 2000, limitReason: "endpoint-rate" })
    }))

  for (const after of ["soon", "-1", "1e9", "Wed, 21 Oct 2026 07:28:00 GMT"]) {
    it.effect(`takes no notice of retry-after ${after}`, () =>
      Effect.gen(function*() {
        const { result } = yield* answered(http(429, refusal(invalid), { "retry-after": after }), failing(created(order)))
        assert.deepInclude(only("RateLimited", result.reason), { retryAfterMs: null })
      }))
  }

  it.effect("tells a stored 500 from a fresh one", () =>
    Effect.gen(function*() {
      const stored = yield* answered(http(500, refusal("api_error"), { "idempotent-replayed": "true" }), failing(created(order)))
      assert.deepInclude(only("GatewayUnavailable", stored.result.reason), { replayed: true, status: 500 })
      const fresh = yield* answered(http(500, refusal("api_error")), failing(created(order)))
      assert.deepInclude(only("GatewayUnavailable", fresh.result.reason), { replayed: false })
    }))
})

describe("an answer to confirm", () => {
  const declined = { ...intent, status: "requires_payment_method", amount_received: 0, last_payment_error: { type: "card_error", code: "card_declined" } }
  const card = (payment_intent?: unknown) => http(402, refusal("card_error", { code: "card_declined", decline_code: "lost_card", payment_intent }))
  const unexpected = (payment_intent?: unknown) => http(400, refusal(invalid, { code: "payment_intent_unexpected_state", payment_intent }))

  for (const status of ["succeeded", "processing", "requires_action", "canceled"] as const) {
    it.effect(`unexpected state of an intent that is ${status}: that payment`, () =>
      Effect.gen(function*() {
        const { requests, result } = yield* answered(unexpected({ ...intent, status }), confirm(order, "pi_1"))
        assert.strictEqual(result.status, status)
        assert.strictEqual(requests.length, 1)
      }))
  }

  it.effect("402 with an intent that succeeded: that payment", () =>
    Effect.gen(function*() {
      const { result } = yield* answered(card(intent), confirm(order, "pi_1"))
      assert.strictEqual(result.status, "succeeded")
      assert.strictEqual(result.chargeId, "ch_1")
    }))

  it.effect("402 with an intent that did not succeed: declined", () =>
    Effect.gen(function*() {
      const { result } = yield* answered(card(declined), failing(confirm(order, "pi_1")))
      assert.deepInclude(result.reason, { _tag: "CardDeclined", code: "card_declined", declineCode: "lost_card" })
      assert.strictEqual(result.outcome, "not_charged")
    }))

  const doubtful: Record<string, string> = {
    "402 without an error": http(402, {}),
    "402 without an intent, and no way to read it": card(),
    "402 with another intent": card({ ...declined, id: "pi_2" }),
    "402 with an intent that cannot be read": card({ ...declined, status: "new" }),
    "unexpected state without an intent, and no way to read it": unexpected(),
    "200 with another intent": http(200, { ...intent, id: "pi_2" }),
    "400 whose intent cannot be read": http(400, refusal(invalid, { code: "resource_missing" }))
  }
  for (const [name, bytes] of Object.entries(doubtful)) {
    it.effect(`${name}: the outcome is unknown`, () =>
      Effect.gen(function*() {
        const { result } = yield* answered(bytes, failing(confirm(order, "pi_1")))
        assert.strictEqual(result.reason._tag, "UnexpectedAnswer")
        assert.strictEqual(result.outcome, "unknown")
      }))
  }
})

describe("what a list and a customer may look like", () => {
  const find = Effect.flatMap(ChargeGateway, (gateway) => gateway.find(order, 0))
  const list = (data: ReadonlyArray<unknown>, has_more = false) => http(200, { object: "list", data, has_more })

  it.effect("objects of others are not read", () =>
    Effect.gen(function*() {
      const other = { id: "pi_9", object: "payment_intent", status: "requires_capture", metadata: {} }
      const { result } = yield* answered(list([other, intent]), find)
      assert.strictEqual(result?.id, "pi_1")
    }))

  for (const [name, bytes] of [
    ["one of ours that cannot be read", list([{ ...intent, status: "requires_capture" }])],
    ["no list", http(200, intent)],
    ["an empty page with more to come", list([], true)],
    ["the same page again and again", list([{ ...intent, metadata: {} }], true)]
  ] as const) {
    it.effect(`${name} is not "nothing found"`, () =>
      Effect.gen(function*() {
        const { result } = yield* answered(bytes, failing(find))
        assert.strictEqual(result.reason._tag, "UnexpectedAnswer")
      }))
  }

  it.effect("prefers what moved money, then the oldest, and leaves canceled ones out", () =>
    Effect.gen(function*() {
      const like = (id: string, status: string) => ({ ...intent, id, status })
      const newestFirst = [like("pi_4", "canceled"), like("pi_3", "requires_payment_method"), like("pi_2", "succeeded"), like("pi_1", "requires_payment_method")]
      assert.strictEqual((yield* answered(list(newestFirst), find)).result?.id, "pi_2")
      assert.strictEqual((yield* answered(list(newestFirst.filter(({ id }) => id !== "pi_2")), find)).result?.id, "pi_1")
      assert.strictEqual((yield* answered(list(newestFirst.slice(0, 1)), find)).result, undefined)
      const strangers = [{ ...intent, metadata: { charge_key: "0".repeat(32), generation: "1" } }, { ...intent, metadata: { generation: "1" } }]
      assert.strictEqual((yield* answered(list(strangers), find)).result, undefined)
    }))

  const method = Effect.flatMap(ChargeGateway, (gateway) => gateway.defaultPaymentMethod(order))
  const customer = { object: "customer", id: "cus_1", default_source: "card_1" }
  for (const [name, body, expected] of [
    ["a default method", { ...customer, invoice_settings: { default_payment_method: "pm_1" } }, "pm_1"],
    ["an expanded one", { ...customer, invoice_settings: { default_payment_method: { id: "pm_1", object: "payment_method" } } }, "pm_1"],
    ["a source only", { ...customer, invoice_settings: { default_payment_method: null } }, "card_1"],
    ["an old customer without settings", customer, "card_1"]
  ] as const) {
    it.effect(`${name}: ${expected}`, () =>
      Effect.gen(function*() {
        assert.strictEqual((yield* answered(http(200, body), method)).result, expected)
      }))
  }

  it.effect("another customer than the one asked for is refused", () =>
    Effect.gen(function*() {
      const { result } = yield* answered(http(200, { ...customer, id: "cus_2" }), failing(method))
      assert.strictEqual(result.reason._tag, "UnexpectedAnswer")
    }))
})

describe("secrets", () => {
  for (const status of [200, 400, 401, 402, 403, 409, 429, 500]) {
    it.effect(`${status}: neither the key nor a client secret is seen in an error`, () =>
      Effect.gen(function*() {
        const message = `Invalid API Key provided: ${secret}; pi_1_secret_Hush`
        const body = { ...refusal(invalid, { message, code: secret, param: secret }), ...intent, status: message, id: message }
        const headers = { "request-id": secret, "stripe-rate-limited-reason": secret }
        const text = yield* visible(answered(http(status, body, headers), created(order)))
        assert.include(text, "ChargeError")
        assert.notInclude(text, secret)
        assert.notInclude(text, "secret_Hush")
      }))
  }
})
