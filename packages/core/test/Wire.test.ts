import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, ConfigProvider, Effect, Result, Schema } from "effect"
import {
  Canceled, ChargeConflict, ChargeError, chargeKeyOf, ChargeOutcome, ChargeRequest, CardDeclined, Declined, defaultNamespace, LedgerError, Processing, Rejected, RequiresAction,
  SubmitError, Succeeded, Wire
} from "../src/index.ts"
import { id, request } from "./arbitraries.ts"

const wire = Wire.make({})
const chargeKey = chargeKeyOf({ namespace: defaultNamespace, customerId: "acme", billingPeriod: "2026-07" })
const joined = (text: string) => {
  const frame = Result.getOrThrow(wire.decodeRequests(text))
  return frame.form === "joined" ? frame : assert.fail("expected the joined form")
}
const plain = (text: string) => {
  const frame = Result.getOrThrow(wire.decodeRequests(text))
  return frame.form === "plain" ? frame : assert.fail("expected the plain form")
}
const tag = (read: Result.Result<unknown, { readonly reason: { readonly _tag: string } }>) => Result.isFailure(read) ? read.failure.reason._tag : "read"
const plainBody = { customer_id: "acme", billing_period: "2026-Q3", amount_cents: 1999, stripe_customer_id: "cus_T001" }

describe("joined form", () => {
  const items = Arbitrary.array(Arbitrary.all({ id, deadlineMs: Arbitrary.schema(Schema.Finite.pipe(Schema.check(Schema.isGreaterThan(0)))), request }), { maxLength: 5 })

  it.prop("brings requests across unchanged", [id, items], ([client, sent]) => {
    const frame = joined(wire.encodeRequests(client, sent))
    assert.strictEqual(frame.client, client)
    assert.deepStrictEqual(frame.items.map((item) => ({ ...item, request: Result.getOrThrow(item.request) })), sent)
  })

  const reply = Arbitrary.schema(Schema.Union([ChargeOutcome, SubmitError]))

  it.prop("brings every outcome and every error across unchanged", [Arbitrary.array(Arbitrary.all([id, reply]), { maxLength: 5 })], ([sent]) => {
    const replies = sent.map(([key, value]) => ({ id: key, reply: Schema.is(ChargeOutcome)(value) ? Result.succeed(value) : Result.fail(value) }))
    const text = wire.encodeReplies(replies)
    const back = Result.getOrThrow(wire.decodeReplies(text))
    assert.strictEqual(wire.encodeReplies(back), text)
    assert.deepStrictEqual(back.map(({ reply: value }) => Result.merge(value)._tag), replies.map(({ reply: value }) => Result.merge(value)._tag))
    back.forEach(({ reply: value }, index) => {
      const original = replies[index]!.reply
      if (Result.isFailure(value) && Result.isFailure(original)) {
        assert.strictEqual(value.failure.message, original.failure.message)
        assert.strictEqual(value.failure.isRetryable, original.failure.isRetryable)
        assert.strictEqual(value.failure.outcome, original.failure.outcome)
      }
    })
  }, { arbitrary: { runs: 300 } })

  it.prop("serves the neighbours of any item that cannot be read", [request, Schema.Json], ([good, junk]) => {
    const whole = JSON.parse(wire.encodeRequests("c", [{ id: "1", deadlineMs: 1, request: good }])) as { readonly items: ReadonlyArray<object> }
    const frame = joined(JSON.stringify({ v: 1, client: "c", items: [junk, whole.items[0], { ...whole.items[0], id: "2", body: junk }, { ...whole.items[0], id: "3", deadline: "soon" }] }))
    assert.deepStrictEqual(frame.items.map((item) => item.id), [frame.items[0]!.id, "1", "2", "3"])
    assert.deepStrictEqual(frame.items.map((item) => tag(item.request)), ["MalformedMessage", "read", "MalformedMessage", "MalformedMessage"])
    assert.deepStrictEqual(Result.getOrThrow(frame.items[1]!.request), good)
  })

  it("refuses an item whose sender does not wait, and says what came", () => {
    for (const deadline of [0, -1, -0.5]) {
      const body = { customer_id: "acme", billing_period: "2026-Q3", amount_minor: 1999, currency: "usd", stripe_customer_id: "cus_T001" }
      const [item] = joined(JSON.stringify({ v: 1, client: "c", items: [{ id: "1", deadline, body }] })).items
      assert.deepStrictEqual([item?.id, tag(item!.request), item?.source], ["1", "MalformedMessage", { id: "1", deadline, body }])
    }
  })

  it.prop("counts an answer that cannot be read as lost, since nobody knows what it said of the money", [Schema.Json], ([junk]) => {
    const good = { id: "1", reply: Result.succeed(new Processing({ chargeKey, alreadySettled: false, paymentIntentId: "pi_1" })) }
    const { items: [item] } = JSON.parse(wire.encodeReplies([good])) as { readonly items: ReadonlyArray<unknown> }
    const back = Result.getOrThrow(wire.decodeReplies(JSON.stringify({ v: 1, items: [{ id: "0", body: { outcome: junk } }, item, junk] })))
    assert.deepStrictEqual(back, [good])
  })

  it("refuses another version and says so", () => {
    for (const v of [0, 2, "1", null]) {
      const read = wire.decodeRequests(JSON.stringify({ ...plainBody, v, client: "c", items: [] }))
      assert.strictEqual(Result.isFailure(read) ? read.failure.message : "", "malformed message: v: this version of the wire is not known; it is 1")
    }
  })

  it("refuses in the body what a file would refuse, naming the field where it can", () => {
    const body = { customer_id: "acme", billing_period: "2026-07", amount_minor: 1999, currency: "usd", stripe_customer_id: "cus_T001" }
    const readWith = (change: object) => joined(JSON.stringify({ v: 1, client: "c", items: [{ id: "1", deadline: 1, body: { ...body, ...change } }] })).items[0]!.request
    const refusal = (change: object) => {
      const read = readWith(change)
      return Result.isFailure(read) && read.failure.reason._tag === "MalformedMessage" ? read.failure.reason.field ?? "body" : "read"
    }
    assert.strictEqual(refusal({}), "read")
    assert.strictEqual(refusal({ billing_period: "2026-13" }), "billing_period")
    assert.strictEqual(refusal({ currency: "xxx" }), "currency")
    assert.strictEqual(refusal({ amount_minor: 49 }), "amount")
    for (const change of [{ amount_minor: 19.99 }, { amount_minor: "1999" }, { amount_minor: 2 ** 53 }, { customer_id: 42 }, { customer_id: " acme" }, { item: "" }, { stripe_customer_id: null }]) {
      assert.strictEqual(refusal(change), "body")
    }
    for (const [field, place] of [["customer_id", "customerId"], ["item", "item"], ["stripe_customer_id", "stripeCustomerId"], ["payment_method", "paymentMethod"], ["namespace", "namespace"]] as const) {
      const read = readWith({ [field]: "ac\u202eme" })
      assert.match(Result.isFailure(read) ? read.failure.message : "read", new RegExp(`change the direction of reading\\s+at \\["${place}"\\]`), field)
    }
  })
})

describe("plain form", () => {
  it("is read as existing workers and producers write it", () => {
    const frame = plain(JSON.stringify({ ...plainBody, seq: 7, idempotency_key: "theirs" }))
    assert.strictEqual(frame.seq, 7)
    assert.deepStrictEqual(Schema.encodeSync(ChargeRequest)(Result.getOrThrow(frame.request)), {
      namespace: defaultNamespace, customerId: "acme", billingPeriod: "Q3-2026", amountMinor: 1999, currency: "usd", stripeCustomerId: "cus_T001", senderKey: "theirs"
    })
  })

  it("takes its optional fields, and null for each of them", () => {
    const full = { namespace: "n", currency: "EUR", payment_method: "pm_1", item: "seat-1", revision: 2, idempotency_key: "k" }
    const charge = Result.getOrThrow(plain(JSON.stringify({ ...plainBody, ...full })).request)
    assert.deepInclude(Schema.encodeSync(ChargeRequest)(charge), { namespace: "n", currency: "eur", paymentMethod: "pm_1", item: "seat-1", revision: 2, senderKey: "k" })
    const nulls = Object.fromEntries(Object.keys(full).map((name) => [name, null]))
    assert.deepStrictEqual(plain(JSON.stringify({ ...plainBody, ...nulls })), plain(JSON.stringify(plainBody)))
  })

  it("cannot allow a future period: that is a person's decision", () => {
    assert.isUndefined(Result.getOrThrow(plain(JSON.stringify({ ...plainBody, allow_future: true })).request).allowFuture)
  })

  it.prop("echoes a counter as ack_seq and nothing deeper", [Schema.Json], ([seq]) => {
    const answer = JSON.parse(wire.encodePlainReply(Result.succeed(outcomes[0]!), plain(JSON.stringify({ ...plainBody, seq })).seq)) as object
    if (typeof seq === "object") assert.notProperty(answer, "ack_seq")
    else assert.deepInclude(answer, { ack_seq: JSON.parse(JSON.stringify(seq)) })
  })

  it("does not answer a request without a counter with one", () => {
    assert.notProperty(JSON.parse(wire.encodePlainReply(Result.succeed(outcomes[0]!), plain(JSON.stringify(plainBody)).seq)), "ack_seq")
  })

  const common = { chargeKey, alreadySettled: false }
  const outcomes: ReadonlyArray<ChargeOutcome> = [
    new Succeeded({ ...common, paymentIntentId: "pi_1", chargeId: "ch_1", amountReceivedMinor: 1999 }),
    new Succeeded({ ...common, alreadySettled: true, paymentIntentId: "pi_1", chargeId: null, amountReceivedMinor: 1999 }),
    new Processing({ ...common, paymentIntentId: "pi_1" }),
    new Declined({ ...common, paymentIntentId: "pi_1", code: "card_declined", declineCode: "expired_card", detail: "expired" }),
    new RequiresAction({ ...common, paymentIntentId: "pi_1", detail: "3DS" }),
    new Rejected({ ...common, code: "CapExceeded", detail: "over the cap" }),
    new Canceled({ ...common, paymentIntentId: null, detail: "by hand" })
  ]
  const error = (type: string, reason: string, message: string) => ({ type, reason, message, retryable: false, outcome: "not_charged" })
  const answers = [
    { status: "ok", charge_id: "ch_1", payment_intent_id: "pi_1", amount_received: 1999, charge_key: chargeKey },
    { status: "already_processed", charge_id: "pi_1", payment_intent_id: "pi_1", amount_received: 1999, charge_key: chargeKey },
    { status: "processing", payment_intent_id: "pi_1", charge_key: chargeKey },
    { status: "error", payment_intent_id: "pi_1", charge_key: chargeKey, error: { ...error("Declined", "card_declined", "expired"), decline_code: "expired_card" } },
    { status: "error", payment_intent_id: "pi_1", charge_key: chargeKey, error: error("RequiresAction", "RequiresAction", "3DS") },
    { status: "error", charge_key: chargeKey, error: error("Rejected", "CapExceeded", "over the cap") },
    { status: "error", payment_intent_id: null, charge_key: chargeKey, error: error("Canceled", "Canceled", "by hand") }
  ]
  outcomes.forEach((outcome, index) => {
    it(`answers ${outcome._tag}${outcome.alreadySettled ? " again" : ""}`, () => {
      assert.deepStrictEqual(JSON.parse(wire.encodePlainReply(Result.succeed(outcome), undefined)), answers[index])
    })
  })

  it.prop("answers every error with what is known about the money", [SubmitError], ([trouble]) => {
    const answer = JSON.parse(wire.encodePlainReply(Result.fail(trouble), 3)) as { readonly error: object }
    assert.deepStrictEqual({ ...answer, error: { ...answer.error } }, {
      status: "error", ack_seq: 3,
      error: { type: trouble._tag, reason: trouble.reason._tag, message: trouble.message, retryable: trouble.isRetryable, outcome: trouble.outcome }
    })
  })

  it("shows a conflict and a decline by their names", () => {
    const terms = { amountMinor: 1900, currency: "usd", stripeCustomerId: "cus_T001", paymentMethod: null }
    const conflict = new LedgerError({ reason: new ChargeConflict({ expected: terms, actual: { ...terms, amountMinor: 2100 } }), chargeKey })
    const decline = new ChargeError({ reason: new CardDeclined({ code: "card_declined", declineCode: null, detail: "no" }), chargeKey, requestId: null })
    for (const [trouble, reason] of [[conflict, "ChargeConflict"], [decline, "CardDeclined"]] as const) {
      assert.include(wire.encodePlainReply(Result.fail(trouble), undefined), `"reason":"${reason}"`)
    }
  })
})

describe("any input", () => {
  const deep = "[".repeat(100_000) + "]".repeat(100_000)
  const texts: ReadonlyArray<string> = [
    "", " ", "{", "[]", "null", "0", "\"x\"", "\ufeff{}", "{}", deep, `{"v":1}`, `{"v":1,"client":"","items":[]}`, `{"v":1,"client":"c","items":{}}`, `{"v":1,"client":"c","items":[null]}`,
    `{"__proto__":{"v":1}}`, `{"customer_id":${deep}}`, `{"v":1,"client":"c","items":[{"id":"1","deadline":1e999,"body":${deep}}]}`, `{"v":1,"items":[{"id":"1","body":{"error":${deep}}}]}`
  ]

  const never = (text: string) => {
    const requests = wire.decodeRequests(text)
    if (Result.isFailure(requests)) assert.strictEqual(requests.failure.reason._tag, "MalformedMessage")
    else if (requests.success.form === "plain" && Result.isFailure(requests.success.request)) {
      // The sender is told, in its own form.
      assert.strictEqual((JSON.parse(wire.encodePlainReply(Result.fail(requests.success.request.failure), requests.success.seq)) as { readonly status: string }).status, "error")
    }
    const replies = wire.decodeReplies(text)
    if (Result.isFailure(replies)) assert.strictEqual(replies.failure.reason._tag, "MalformedMessage")
  }

  texts.forEach((text) => it(`answers ${text.slice(0, 40)} without throwing`, () => never(text)))
  it("answers a counter that is as deep as the stack", () => never(`{"seq":${deep}}`))
  it.prop("answers any text without throwing", [Schema.String], ([text]) => never(text))
  it.prop("answers any JSON without throwing", [Schema.Json], ([json]) => never(JSON.stringify(json)))
  it.prop("answers any bytes without throwing", [Schema.Array(Schema.Int.pipe(Schema.check(Schema.isBetween({ minimum: 0, maximum: 255 }))))], ([bytes]) => never(Buffer.from(bytes).toString("utf8")))
  it.prop("answers a frame with any part replaced", [Schema.Literals(["v", "client", "items"]), Schema.Json], ([part, json]) => never(JSON.stringify({ v: 1, client: "c", items: [], [part]: json })))
  it.prop("answers a plain request with any field replaced", [Schema.Literals(["customer_id", "billing_period", "amount_cents", "stripe_customer_id", "namespace", "item", "currency", "seq"]), Schema.Json], ([field, json]) => never(JSON.stringify({ ...plainBody, [field]: json })))

  it.prop("cuts what a malformed message says, so that a large frame is not sent back", [Schema.Literals(["customer_id", "currency", "billing_period"])], ([field]) => {
    const read = plain(JSON.stringify({ ...plainBody, [field]: "x".repeat(100_000) })).request
    assert.isBelow(Result.isFailure(read) ? read.failure.message.length : Number.POSITIVE_INFINITY, 600)
  })
})

describe("configuration", () => {
  const labels = (env: Record<string, string>) =>
    Wire.fromConfig.pipe(
      Effect.map((codec) => codec.decodeRequests(JSON.stringify({ ...plainBody, billing_period: "summer" }))),
      Effect.map((frame) => tag(Result.flatMap(frame, (read) => read.form === "plain" ? read.request : assert.fail("expected the plain form")))),
      Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env })))
    )

  it.effect("refuses free labels unless PURSER_PERIOD_LABELS is opaque", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* labels({}), "MalformedMessage")
      assert.strictEqual(yield* labels({ PURSER_PERIOD_LABELS: "opaque" }), "read")
      assert.isTrue((yield* Effect.exit(labels({ PURSER_PERIOD_LABELS: "free" })))._tag === "Failure")
    }))
})
