/** Signatures over the raw bytes, both ways in time, and what counts as an event. */
import { WebhookSource, type WebhookRefused } from "@purser/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { createHmac } from "node:crypto"
import { Stripe } from "stripe"
import { StripeWebhooks } from "@purser/stripe"

const secret = "whsec_test_secret_of_the_endpoint"
const other = "whsec_the_next_secret_of_it"
const nowS = 1_785_600_000
const event = { object: "event", id: "evt_1", type: "payment_intent.succeeded", created: nowS - 3, data: { object: { id: "pi_1", object: "payment_intent" } } }
const bytes = (value: unknown) => Buffer.from(typeof value === "string" ? value : JSON.stringify(value))
const signed = (payload: Uint8Array, timestamp = nowS, key = secret) =>
  `t=${timestamp},v1=${createHmac("sha256", key).update(`${timestamp}.`).update(payload).digest("hex")}`

const layer = (...secrets: ReadonlyArray<string>) => StripeWebhooks.layer({ secrets: secrets.map((text) => Redacted.make(text)) })
const open = (body: Uint8Array, header: string | undefined) => Effect.flatMap(WebhookSource, (source) => source.open(body, header))
const reason = <R>(effect: Effect.Effect<unknown, WebhookRefused, R>) => Effect.map(Effect.flip(effect), (error) => error.reason._tag)
const at = (test: () => Effect.Effect<void, unknown, WebhookSource>, ...secrets: ReadonlyArray<string>) => () =>
  Effect.andThen(TestClock.setTime(nowS * 1000), test()).pipe(Effect.provide(layer(...(secrets.length === 0 ? [secret] : secrets))))

describe("StripeWebhooks", () => {
  it.effect("opens what the SDK signs, and tells what the event is about", at(() =>
    Effect.gen(function*() {
      const payload = JSON.stringify(event)
      const header = Stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp: nowS })
      assert.deepStrictEqual(yield* open(bytes(payload), header), {
        id: "evt_1", type: "payment_intent.succeeded", createdMs: (nowS - 3) * 1000, account: null, subject: "payment", objectId: "pi_1"
      })
    })))

  it.effect("sorts events by what they are about; others keep no object", at(() =>
    Effect.gen(function*() {
      const of = (type: string, id: string | undefined, account?: string) => {
        const body = bytes({ ...event, type, data: { object: id === undefined ? {} : { id } }, ...(account === undefined ? {} : { account }) })
        return Effect.map(open(body, signed(body)), ({ account, objectId, subject }) => [subject, objectId, account])
      }
      assert.deepStrictEqual(yield* of("charge.dispute.created", "dp_1"), ["dispute", "dp_1", null])
      assert.deepStrictEqual(yield* of("charge.refunded", "ch_1"), ["charge", "ch_1", null])
      assert.deepStrictEqual(yield* of("charge.refund.updated", "re_1"), ["refund", "re_1", null])
      assert.deepStrictEqual(yield* of("refund.created", "re_1", "acct_1"), ["refund", "re_1", "acct_1"])
      assert.deepStrictEqual(yield* of("invoice.paid", "in_1"), ["payment", "in_1", null])
      assert.deepStrictEqual(yield* of("customer.updated", "cus_1"), ["customer", "cus_1", null])
      assert.deepStrictEqual(yield* of("customer.updated", "../charges"), ["other", null, null])
      assert.deepStrictEqual(yield* of("customer.created", "cus_1"), ["other", null, null])
      assert.deepStrictEqual(yield* of("balance.available", undefined), ["other", null, null])
      assert.deepStrictEqual(yield* of("payment_intent.succeeded", "../customers/cus_1"), ["other", null, null])
    })))

  it.effect("believes no bytes but those that were signed", at(() =>
    Effect.gen(function*() {
      const body = bytes(event)
      const header = signed(body)
      for (let index = 0; index < body.length; index += 7) {
        const changed = Buffer.from(body)
        changed[index] = changed[index]! ^ 1
        assert.strictEqual(yield* reason(open(changed, header)), "SignatureWrong")
      }
      // The same JSON in other bytes is another body.
      assert.strictEqual(yield* reason(open(bytes(JSON.stringify(event, null, 1)), header)), "SignatureWrong")
      assert.strictEqual(yield* reason(open(Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), body]), header)), "SignatureWrong")
      assert.strictEqual(yield* reason(open(body, signed(body, nowS, other))), "SignatureWrong")
      assert.strictEqual(yield* reason(open(body, `${header}0`)), "SignatureWrong")
      assert.strictEqual(yield* reason(open(body, header.replace("v1=", "v0="))), "SignatureMissing")
    })))

  it.effect("tolerates five minutes, in the past and in the future", at(() =>
    Effect.gen(function*() {
      const body = bytes(event)
      for (const shift of [-300, 0, 300]) assert.strictEqual((yield* open(body, signed(body, nowS + shift))).id, "evt_1")
      for (const shift of [-301, 301, 86_400 * 365]) {
        assert.strictEqual(yield* reason(open(body, signed(body, nowS + shift))), "SignatureStale")
      }
    })))

  it.effect("takes either secret while one is rolled, and any of several signatures", at(() =>
    Effect.gen(function*() {
      const body = bytes(event)
      const [, ours] = signed(body, nowS, other).split(",")
      assert.strictEqual((yield* open(body, signed(body, nowS, other))).id, "evt_1")
      assert.strictEqual((yield* open(body, `t=${nowS},v1=${"0".repeat(64)},${ours!},v0=abc`)).id, "evt_1")
    }), secret, other))

  it.effect("refuses headers that say nothing, or two things", at(() =>
    Effect.gen(function*() {
      const body = bytes(event)
      const header = signed(body)
      const bad = [
        undefined, "", "nonsense", `v1=${"0".repeat(64)}`, "t=1", `t=,${header.split(",")[1]!}`, `${header},t=${nowS + 1}`,
        `t=${nowS}.5,v1=00`, `t=-1,v1=00`, `${header}${",v1=00".repeat(20)}`, `${header},${"x".repeat(5000)}`, `${header},v1`, `${header},v1a`
      ]
      for (const text of bad) assert.strictEqual(yield* reason(open(body, text)), "SignatureMissing", String(text).slice(0, 80))
      assert.strictEqual(yield* reason(open(body, `t=${nowS},v1=zz`)), "SignatureWrong")
      assert.strictEqual(yield* reason(open(body, `t=${nowS},v1=`)), "SignatureWrong")
    })))

  it.effect("refuses what is signed and no event", at(() =>
    Effect.gen(function*() {
      const bad = [
        "", "null", "[]", "{}", "{", JSON.stringify({ ...event, id: 7 }), JSON.stringify({ ...event, id: "pi_1" }), JSON.stringify({ ...event, created: "soon" }),
        JSON.stringify({ ...event, data: null }), JSON.stringify({ ...event, object: "v2.core.event" }), JSON.stringify({ ...event, type: "a b\n" }), "[".repeat(100_000)
      ]
      for (const text of bad) assert.strictEqual(yield* reason(open(bytes(text), signed(bytes(text)))), "EventMalformed", text.slice(0, 80))
      const broken = Buffer.from([0x7b, 0xff, 0x7d])
      assert.strictEqual(yield* reason(open(broken, signed(broken))), "EventMalformed")
    })))

  it.effect("refuses secrets and tolerances that protect nothing, and repeats none of them", () =>
    Effect.gen(function*() {
      const build = (text: string, tolerance?: "0 seconds" | "2 days") =>
        Effect.flip(Effect.scoped(Effect.provide(Effect.asVoid(WebhookSource), StripeWebhooks.layer({ secrets: [Redacted.make(text)], tolerance }))))
      for (const text of ["", "whsec_", "sk_test_not_a_signing_secret", "whsec_with a blank", "whsec_short"]) {
        const error = yield* build(text)
        assert.strictEqual(error.reason._tag, "SettingRefused")
        if (text !== "" && text !== "whsec_") assert.notInclude(error.message, text)
      }
      assert.include((yield* build(secret, "0 seconds")).message, "PURSER_WEBHOOK_TOLERANCE")
      assert.include((yield* build(secret, "2 days")).message, "PURSER_WEBHOOK_TOLERANCE")
    }))
})
