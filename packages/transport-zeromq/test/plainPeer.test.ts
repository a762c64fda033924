import { assert, describe, it } from "@effect/vitest"
import { CardDeclined, ChargeError, type ChargeRequest, Declined } from "@purser/core"
import { Effect, Ref } from "effect"
import * as zmq from "zeromq"
import { bare, bareRequester, freeAddress, paid, serve } from "./support.ts"

const body = { customer_id: "cust_123", billing_period: "Q3-2026", amount_cents: 4900, stripe_customer_id: "cus_123" }

/** A server that remembers what its handler saw. */
const recording = Effect.gen(function*() {
  const seen = yield* Ref.make<ReadonlyArray<ChargeRequest>>([])
  const address = yield* freeAddress
  yield* serve({ endpoint: address, requestMaxBytes: 10_000 }, (request) => Effect.as(Ref.update(seen, (all) => [...all, request]), paid(request)))
  return { address, seen }
})

const parse = (frames: ReadonlyArray<string>) => {
  assert.strictEqual(frames.length, 1)
  return JSON.parse(frames[0]!)
}

describe("a peer that speaks the plain form", () => {
  it.live("is answered in the plain form, with its counter echoed", () =>
    Effect.gen(function*() {
      const { address, seen } = yield* recording
      const ask = yield* bareRequester(address)
      const reply = parse(yield* ask(JSON.stringify({ ...body, seq: 41, idempotency_key: "1738000000.25" })))
      const [request] = yield* Ref.get(seen)
      assert.strictEqual(request?.billingPeriod, "Q3-2026")
      assert.strictEqual(request?.senderKey, "1738000000.25")
      assert.deepStrictEqual(reply, {
        status: "ok",
        charge_id: "ch_cust_123",
        payment_intent_id: "pi_cust_123",
        amount_received: 4900,
        charge_key: request?.chargeKey,
        ack_seq: 41
      })
      assert.notProperty(parse(yield* ask(JSON.stringify(body))), "ack_seq")
    }), 60_000)

  it.live("gets declines and failures as errors, never silence", () =>
    Effect.gen(function*() {
      const address = yield* freeAddress
      yield* serve({ endpoint: address }, (request) =>
        request.customerId === "declined"
          ? Effect.succeed(new Declined({ chargeKey: request.chargeKey, alreadySettled: false, paymentIntentId: "pi_1", code: "card_declined", declineCode: "lost_card", detail: "no" }))
          : request.customerId === "fails"
          ? Effect.fail(new ChargeError({ reason: new CardDeclined({ code: "card_declined", declineCode: null, detail: "no" }), chargeKey: request.chargeKey, requestId: null }))
          : Effect.die("defect"))
      const ask = yield* bareRequester(address)
      const answers = yield* Effect.forEach(["declined", "fails", "dies"], (customer_id) => Effect.map(ask(JSON.stringify({ ...body, customer_id })), parse))
      assert.deepStrictEqual(
        answers.map(({ error, status }) => [status, error.type, error.retryable, error.outcome]),
        [["error", "Declined", false, "not_charged"], ["error", "ChargeError", false, "not_charged"], ["error", "LedgerError", true, "unknown"]]
      )
    }), 60_000)

  it.live("gets an error for each message that cannot be read, and is served on", () =>
    Effect.gen(function*() {
      const { address, seen } = yield* recording
      const ask = yield* bareRequester(address)
      const bad: ReadonlyArray<ReadonlyArray<string | Uint8Array>> = [
        [""],
        ["not JSON"],
        ["[]"],
        ["null"],
        [JSON.stringify({ v: 2, client: "c", items: [] })],
        [JSON.stringify({ v: 1, client: "c" })],
        [JSON.stringify({ ...body, amount_cents: 49.5 })],
        [JSON.stringify({ ...body, billing_period: "2026-13" })],
        [JSON.stringify({ ...body, customer_id: "x".repeat(10_001) })],
        // A lone byte of UTF-8: replacing it would make one id of two.
        [Buffer.concat([Buffer.from(`{"customer_id":"`), Buffer.from([0xff]), Buffer.from(`"}`)])],
        [JSON.stringify(body), "a second frame"]
      ]
      for (const frames of bad) {
        const { error, status } = parse(yield* ask(...frames))
        assert.deepStrictEqual([status, error.type, error.reason, error.retryable], ["error", "TransportError", "MalformedMessage", false])
      }
      assert.deepStrictEqual(yield* Ref.get(seen), [])
      assert.strictEqual(parse(yield* ask(JSON.stringify(body))).status, "ok")
    }), 60_000)

  it.live("keeps its counter in the answer to a request with a bad field", () =>
    Effect.gen(function*() {
      const { address } = yield* recording
      const ask = yield* bareRequester(address)
      const reply = parse(yield* ask(JSON.stringify({ ...body, amount_cents: -1, seq: "seven" })))
      assert.deepStrictEqual([reply.status, reply.ack_seq], ["error", "seven"])
    }), 60_000)

  it.live("may be a DEALER without delimiter, or a REQ that correlates", () =>
    Effect.gen(function*() {
      const { address } = yield* recording
      const dealer = yield* bare(() => new zmq.Dealer({ linger: 0 }))
      dealer.connect(address)
      // Two at once on one connection: each has its answer, under no delimiter.
      const answers = yield* Effect.promise(() =>
        Promise.all([dealer.send(JSON.stringify({ ...body, seq: 1 })).then(() => dealer.send(JSON.stringify({ ...body, seq: 2 }))), dealer.receive()])
          .then(([, first]) => dealer.receive().then((second) => [first, second]))
      )
      assert.sameMembers(answers.map((frames) => parse(frames.map(String)).ack_seq), [1, 2])
      const ask = yield* bareRequester(address, { correlate: true, relaxed: true })
      assert.strictEqual(parse(yield* ask(JSON.stringify(body))).status, "ok")
    }), 60_000)

  it.live("shares a joined frame's fate only with itself", () =>
    Effect.gen(function*() {
      const { address, seen } = yield* recording
      const ask = yield* bareRequester(address)
      const good = { customer_id: "c", billing_period: "2026-07", amount_minor: 1000, currency: "usd", stripe_customer_id: "cus_1" }
      const reply = parse(yield* ask(JSON.stringify({
        v: 1,
        client: "a",
        items: [{ id: "1", deadline: 1000, body: good }, { id: "2", deadline: 1000, body: { ...good, currency: "xxx" } }, { id: "3", deadline: 1000, body: null }]
      })))
      assert.deepStrictEqual(reply.items.map((item: { id: string; body: object }) => [item.id, Object.keys(item.body)]), [["1", ["outcome"]], ["2", ["error"]], ["3", ["error"]]])
      assert.strictEqual((yield* Ref.get(seen)).length, 1)
    }), 60_000)
})
