/** Frames of both forms. The strict readers are `JSON.parse` and the field by its name, and one that keeps every name: what the codec reads must be that. */
import { assert, it } from "@effect/vitest"
import { type ChargeRequest, chargeKeyOf, Declined, defaultNamespace, parsePeriod, Processing, type ReplyItem, type RequestFrame, Succeeded, Wire } from "@purser/core"
import { Arbitrary, Effect, Result } from "effect"
import { fuzz } from "../src/fuzz.ts"
import { between, mutated, noise, oneOf } from "../src/Mutation.ts"
import { standsTwice } from "../src/strictJson.ts"

const wire = Wire.make({})
const utf8 = new TextDecoder("utf-8", { fatal: true })
const textOf = (bytes: Buffer) => Result.getOrUndefined(Result.try(() => utf8.decode(bytes)))

const customer = oneOf(["acme", "Müller", "a:b", "名", "cust_0042"])
const period = oneOf(["2026-07", "2026-Q3", "2026", "2026-W07", "2026-02-28"])
const body = Arbitrary.all({
  customer_id: customer,
  billing_period: period,
  stripe_customer_id: oneOf(["cus_T001", "cus_T002"]),
  currency: oneOf(["usd", "EUR", "kes", "jpy", "kwd", "isk"])
})
const extra = oneOf(["{}", "{\"item\":\"seat-1\"}", "{\"namespace\":\"other\"}", "{\"payment_method\":\"pm_1\",\"revision\":2}", "{\"item\":null,\"revision\":null}"])
const amount = between(1, 9999)

/** 500 to 999900 in hundreds, which every currency of the list allows. */
const plainText = Arbitrary.map(Arbitrary.all([body, amount, extra]), ([fields, hundreds, more]) =>
  JSON.stringify({ ...fields, amount_cents: 400 + hundreds * 100, seq: 7, idempotency_key: "theirs", ...JSON.parse(more) as object }))
const item = Arbitrary.map(Arbitrary.all([body, amount, extra, between(1, 99)]), ([fields, hundreds, more, id]) =>
  ({ id: `r${id}`, deadline: 5000, body: { ...fields, amount_minor: 400 + hundreds * 100, ...JSON.parse(more) as object } }))
const joinedText = Arbitrary.map(Arbitrary.array(item, { maxLength: 4 }), (items) => JSON.stringify({ v: 1, client: "c-1", items }))

const words = [
  "\"v\":1,", "\"v\":2,", "\"customer_id\":\"evil\",", "\"amount_cents\":1,", "\"amount_minor\":100,", "\"currency\":\"KES\",", "\"currency\":\"\u212aES\",", "\"allow_future\":true,",
  "\"revision\":1,", "\"namespace\":\"\",", "\"item\":\"\",", "\"id\":\"\",", "\"deadline\":0,", "\"deadline\":1e999,", "\"items\":null,", "\"client\":\"\",", "\"body\":[],", "\"sender_key\":\"k\","
]

/** A valid request with a value in one field that another type of reader might take. */
const names = [
  "customer_id", "billing_period", "amount_cents", "amount_minor", "currency", "stripe_customer_id", "namespace", "item", "revision", "payment_method", "seq", "idempotency_key", "sender_key",
  "allow_future", "__proto__", "\\u0061mount_cents", "amount\\u005fminor", "note"
] as const
const values = [
  "\"\"", "\" a\"", "\"a\\u0000\"", "\"\\ud800\"", "\"1999\"", "1999.0", "1999.5", "1e3", "-1999", "-0", "9007199254740993", "1e999", "true", "[1999]", "{\"valueOf\":1999}", "\"\u212aES\"", "\"UGX\"", "\"usd \"",
  "\"2026-7\"", "\"2026-Q5\"", "\"0000-01\"", "{\"__proto__\":{\"amount_minor\":1}}", "\"\ufeffacme\"", "\"\u2028\"", `"${"x".repeat(256)}"`, "{\"customer_id\":\"evil\"}",
  "{\"a\":1,\"\\u0061\":2}", "[{\"a\":[{\"b\":1,\"b\":1}]}]", "[{\"a\":1},{\"a\":1}]", "\"\\\",\\\"amount_cents\\\":1\""
] as const
const odd = (text: Arbitrary.Arbitrary<string>) =>
  Arbitrary.map(Arbitrary.all([text, oneOf(names), oneOf(values), between(0, 1)]), ([valid, name, value, first]) =>
    // Beside the field of the same name, before or after it.
    Buffer.from(first === 1 ? valid.replace("{\"customer_id\"", `{"${name}":${value},"customer_id"`) : valid.replace(/(?=\}\}\]\}$|(?<!\})\}$)/, `,"${name}":${value}`)))

type Fields = Readonly<Record<string, unknown>>
const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value)
const own = (fields: Fields, name: string): unknown => Object.hasOwn(fields, name) ? fields[name] ?? undefined : undefined

/** The request says what its text says, field by field. */
const sameAs = (fields: unknown, request: ChargeRequest, form: RequestFrame["form"]) => {
  if (!isFields(fields)) assert.fail("a request was read from what is no object")
  const of = (name: string) => own(fields, name)
  const currency = of("currency") ?? (form === "plain" ? "usd" : undefined)
  assert.match(String(currency), /^[A-Za-z]{3}$/)
  assert.strictEqual(request.currency, String(currency).toLowerCase())
  assert.strictEqual(request.amountMinor, of(form === "plain" ? "amount_cents" : "amount_minor"))
  assert.isTrue(Number.isSafeInteger(request.amountMinor) && request.amountMinor > 0)
  assert.strictEqual(request.customerId, of("customer_id"))
  assert.strictEqual(request.stripeCustomerId, of("stripe_customer_id"))
  assert.strictEqual(request.namespace, of("namespace") ?? defaultNamespace)
  assert.strictEqual(request.item, of("item"))
  assert.strictEqual(request.revision, of("revision"))
  assert.strictEqual(request.paymentMethod, of("payment_method"))
  assert.strictEqual(request.senderKey, of(form === "plain" ? "idempotency_key" : "sender_key"))
  assert.strictEqual(request.allowFuture === true, form === "joined" && of("allow_future") === true)
  assert.strictEqual(request.billingPeriod, Result.getOrThrow(parsePeriod(String(of("billing_period")))))
  for (const id of [request.customerId, request.stripeCustomerId, request.namespace]) {
    assert.isTrue(id !== "" && id.isWellFormed() && id.trim() === id && Buffer.byteLength(id) <= 255, JSON.stringify(id))
  }
}

fuzz(it, "wire", {
  runs: 500,
  inputs: { "the plain form, changed": mutated(plainText, words), "the joined form, changed": mutated(joinedText, words), "the plain form, a field odd": odd(plainText), "the joined form, a field odd": odd(joinedText), "noise": noise },
  property: (bytes) =>
    Effect.sync(() => {
      const text = textOf(bytes)
      if (text === undefined) return false
      const read = wire.decodeRequests(text)
      if (Result.isFailure(read)) {
        assert.strictEqual(read.failure.reason._tag, "MalformedMessage")
        return false
      }
      const frame = read.success
      const json = JSON.parse(text) as Fields
      const twice = standsTwice(text)
      if (frame.form === "plain") {
        assert.isFalse(Object.hasOwn(json, "v"))
        if (Result.isSuccess(frame.request)) {
          assert.isEmpty(twice)
          sameAs(json, frame.request.success, "plain")
          return true
        }
        const answer = JSON.parse(wire.encodePlainReply(Result.fail(frame.request.failure), frame.seq)) as { readonly status: string; readonly error: { readonly outcome: string } }
        assert.deepStrictEqual([answer.status, answer.error.outcome], ["error", "not_charged"])
        return false
      }
      const items = json["items"] as ReadonlyArray<unknown>
      assert.isTrue(twice.every((path) => path[0] === "items" && typeof path[1] === "number" && path.length > 2))
      assert.deepStrictEqual([frame.client, frame.items.length], [json["client"], items.length])
      const served = frame.items.flatMap(({ deadlineMs, id, request }, index) => {
        const source = items[index]
        const within = twice.filter(([first, at]) => first === "items" && at === index)
        if (within.some((path) => path.length === 3 && path[2] === "id")) {
          assert.deepStrictEqual([id, Result.isFailure(request)], ["", true])
          return []
        }
        assert.strictEqual(id, isFields(source) && typeof source["id"] === "string" && source["id"].length <= 255 ? source["id"] : "")
        if (Result.isFailure(request)) {
          assert.strictEqual(request.failure.reason._tag, "MalformedMessage")
          return []
        }
        assert.isEmpty(within)
        assert.isTrue(isFields(source) && id !== "" && deadlineMs > 0)
        sameAs((source as Fields)["body"], request.success, "joined")
        return [{ id, deadlineMs, request: request.success }]
      })
      // What was understood comes across again unchanged.
      const again = Result.getOrThrow(wire.decodeRequests(wire.encodeRequests(frame.client, served)))
      assert.isTrue(again.form === "joined")
      if (again.form === "joined") assert.deepStrictEqual(again.items.map(({ request }) => ({ ...Result.getOrThrow(request) })), served.map(({ request }) => ({ ...request })))
      return served.length > 0
    })
})

const chargeKey = chargeKeyOf({ namespace: defaultNamespace, customerId: "acme", billingPeriod: "2026-07" })
const common = { chargeKey, alreadySettled: false }
const replies: ReadonlyArray<ReplyItem> = [
  { id: "1", reply: Result.succeed(new Succeeded({ ...common, paymentIntentId: "pi_1", chargeId: "ch_1", amountReceivedMinor: 1999 })) },
  { id: "2", reply: Result.succeed(new Processing({ ...common, paymentIntentId: "pi_2" })) },
  { id: "3", reply: Result.succeed(new Declined({ ...common, paymentIntentId: "pi_3", code: "card_declined", declineCode: null, detail: "no" })) }
]

fuzz(it, "replies", {
  runs: 500,
  inputs: {
    "answers, changed": mutated(Arbitrary.map(between(1, 3), (count) => wire.encodeReplies(replies.slice(0, count))), ["\"_tag\":\"Succeeded\",", "\"Declined\"", "\"amountReceivedMinor\":1,", "\"error\":{},", "\"id\":\"2\","]),
    "noise": noise
  },
  property: (bytes) =>
    Effect.sync(() => {
      const text = textOf(bytes)
      if (text === undefined) return false
      const read = wire.decodeReplies(text)
      if (Result.isFailure(read)) {
        assert.strictEqual(read.failure.reason._tag, "MalformedMessage")
        return false
      }
      const items = (JSON.parse(text) as { readonly items: ReadonlyArray<Fields> }).items
      for (const { id, reply } of read.success) {
        const said = items.filter((one) => isFields(one) && one["id"] === id).map((one) => isFields(one["body"]) ? one["body"]["outcome"] : undefined)
        if (Result.isFailure(reply)) continue
        const mine = reply.success
        assert.isTrue(
          said.some((one) =>
            isFields(one) && one["_tag"] === mine._tag && one["chargeKey"] === mine.chargeKey
            && (mine._tag !== "Succeeded" || one["amountReceivedMinor"] === mine.amountReceivedMinor && one["paymentIntentId"] === mine.paymentIntentId)),
          JSON.stringify(mine)
        )
      }
      assert.strictEqual(wire.encodeReplies(Result.getOrThrow(wire.decodeReplies(wire.encodeReplies(read.success)))), wire.encodeReplies(read.success))
      return read.success.length > 0
    })
})
