import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { createHash } from "node:crypto"
import { ChargeKey, ChargeRequest, chargeKeyOf, chargeKeyText, defaultNamespace, revisedIdentity, Wire } from "../src/index.ts"
import { id, identity, period, request } from "./arbitraries.ts"

const wire = Wire.make({})
const sha256 = (text: string) => createHash("sha256").update(text, "utf8").digest("hex").slice(0, 32)
const same = (a: object, b: object) => JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort())

describe("ChargeKey", () => {
  it("equals the key that existing Python workers compute", () => {
    const key = chargeKeyOf({ namespace: defaultNamespace, customerId: "cust_123", billingPeriod: "Q3-2026" })
    assert.strictEqual(key, sha256("cust_123:Q3-2026:zmq-billing"))
    assert.strictEqual(key, "94872cda2d5cf2871e4e83c8f2461bd4")
  })

  it("has the revision behind everything else, and an empty part where there is no item", () => {
    const identity = { namespace: defaultNamespace, customerId: "cust_123", billingPeriod: "2026" as const }
    const texts = [identity, { ...identity, item: "seat-1" }, { ...identity, revision: 1 }, { ...identity, item: "seat-1", revision: 2 }, { ...identity, customerId: "a:b", item: "100%" }].map(chargeKeyText)
    assert.deepStrictEqual(texts, ["cust_123:2026:zmq-billing", "cust_123:2026:zmq-billing:seat-1", "cust_123:2026:zmq-billing::r1", "cust_123:2026:zmq-billing:seat-1:r2", "a%3Ab:2026:zmq-billing:100%25"])
  })

  it("of a billing anew follows the one before it, and of a first billing none", () => {
    const identity = { namespace: defaultNamespace, customerId: "cust_123", billingPeriod: "2026", item: "seat-1" }
    assert.deepStrictEqual([2, 1, 0].map((revision) => revisedIdentity({ ...identity, revision })), [{ ...identity, revision: 1 }, { ...identity, revision: 0 }, undefined])
    assert.isUndefined(revisedIdentity(identity))
  })

  it.prop("is 32 hex digits of the identity's text", [identity], ([who]) => {
    const key = chargeKeyOf(who)
    assert.isTrue(Schema.is(ChargeKey)(key))
    assert.strictEqual(key, sha256(chargeKeyText(who)))
  })

  it.prop("is different for different identities", [identity, identity], ([a, b]) => {
    assert.strictEqual(chargeKeyText(a) === chargeKeyText(b), same(a, b))
    assert.strictEqual(chargeKeyOf(a) === chargeKeyOf(b), same(a, b))
  }, { arbitrary: { runs: 500 } })

  it.prop("can be read back: nothing of the identity is lost in its text", [identity], ([who]) => {
    const [customerId, billingPeriod, namespace, item] = chargeKeyText(who).split(":").map((part) => part.replaceAll("%3A", ":").replaceAll("%25", "%"))
    assert.deepStrictEqual({ customerId, billingPeriod, namespace, ...(item === undefined ? {} : { item }) }, who)
  }, { arbitrary: { runs: 500 } })

  it.prop("keeps apart what a plain join would mix up", [id, id, period], ([a, b, billingPeriod]) => {
    const namespace = defaultNamespace
    const keys = [
      { namespace, customerId: `${a}:${b}`, billingPeriod },
      { namespace, customerId: a, billingPeriod, item: b },
      { namespace: `${namespace}:${b}`, customerId: a, billingPeriod },
      { namespace, customerId: `${a}%3A${b}`, billingPeriod },
      { namespace, customerId: `${a}%253A${b}`, billingPeriod },
      { namespace, customerId: a, billingPeriod, item: b, revision: 1 },
      { namespace, customerId: a, billingPeriod, item: b, revision: 11 },
      { namespace, customerId: a, billingPeriod, revision: 1 },
      { namespace, customerId: a, billingPeriod, item: `${b}:r1` },
      { namespace, customerId: a, billingPeriod, item: "r1" }
    ].map(chargeKeyOf)
    assert.strictEqual(new Set(keys).size, keys.length)
  })

  it.prop("is the same for a first billing, whether it says so or not", [id, period], ([customerId, billingPeriod]) => {
    const identity = { namespace: defaultNamespace, customerId, billingPeriod }
    assert.strictEqual(chargeKeyOf({ ...identity, revision: 0 }), chargeKeyOf(identity))
  })

  it.prop("never changes with the terms, the sender's key or a permission", [request, request], ([a, b]) => {
    const { allowFuture: _a, senderKey: _s, ...terms } = b
    const { item: _i, revision: _r, ...rest } = { ...terms, customerId: a.customerId, billingPeriod: a.billingPeriod, namespace: a.namespace }
    const moved = new ChargeRequest({ ...rest, ...(a.item === undefined ? {} : { item: a.item }), ...(a.revision === undefined ? {} : { revision: a.revision }) })
    assert.strictEqual(moved.chargeKey, a.chargeKey)
    assert.strictEqual(new ChargeRequest({ ...moved, senderKey: "other", allowFuture: true }).chargeKey, a.chargeKey)
  })

  it.prop("never changes with anything that the joined form carries", [request, Schema.Finite.pipe(Schema.check(Schema.isGreaterThan(0))), id, id], ([charge, deadlineMs, client, messageId]) => {
    const frame = wire.decodeRequests(wire.encodeRequests(client, [{ id: messageId, deadlineMs, request: charge }]))
    const decoded = Result.getOrThrow(frame)
    assert.strictEqual(decoded.form, "joined")
    if (decoded.form !== "joined") return
    assert.strictEqual(Result.getOrThrow(decoded.items[0]!.request).chargeKey, charge.chargeKey)
  })

  it.prop("never changes with anything that the plain form carries", [id, period, Schema.Json, Schema.String.pipe(Schema.check(Schema.isMaxLength(255))), Schema.Record(Schema.String, Schema.Json)], ([customer, billing, seq, idempotency_key, extra]) => {
    const body = { customer_id: customer, billing_period: billing, amount_cents: 1999, stripe_customer_id: "cus_T001" }
    const { v: _, item: _item, namespace: _namespace, revision: _revision, ...transport } = { ...extra }
    const frame = Result.getOrThrow(wire.decodeRequests(JSON.stringify({ ...transport, currency: "usd", payment_method: null, seq, idempotency_key, ...body })))
    const expected = chargeKeyOf({ namespace: defaultNamespace, customerId: customer, billingPeriod: billing })
    assert.strictEqual(frame.form === "plain" ? Result.getOrThrow(frame.request).chargeKey : undefined, expected)
  })
})
