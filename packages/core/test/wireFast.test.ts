import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Equal, Result, Schema } from "effect"
import { ChargeOutcome, Succeeded, Wire } from "../src/index.ts"
import { readSucceeded, writeSucceeded } from "../src/internal/wireFast.ts"
import { anyText, id, oddNumber, oddText, oneOf, period, request, usualOr } from "./arbitraries.ts"

/** Bodies of which about half can be read. */
const body = Arbitrary.map(
  Arbitrary.all([
    usualOr(id, oddText), usualOr(period, oneOf<unknown>("2026Q3", "Q3-2026", "2026-02-30", "July", "", 7, undefined)), usualOr(oneOf(1900, 50, 100_000), oddNumber),
    usualOr(oneOf("usd", "USD", "jpy", "isk", "kwd"), oneOf<unknown>("xxx", "", 7, null, undefined)), usualOr(id, oddText), usualOr(oneOf(undefined, "zmq-billing"), oddText),
    usualOr(oneOf(undefined, "seat"), oddText), usualOr(oneOf(undefined, "pm_1"), oddText),
    usualOr(oneOf(undefined, "key of a sender"), oddText), usualOr(oneOf(undefined, true), oneOf<unknown>(false, null, "true", 1))
  ]),
  ([customer_id, billing_period, amount_minor, currency, stripe_customer_id, namespace, item, payment_method, sender_key, allow_future]) =>
    ({ customer_id, billing_period, amount_minor, currency, stripe_customer_id, namespace, item, payment_method, sender_key, allow_future })
)
const read = (wire: ReturnType<typeof Wire.make>, sent: object) => {
  const frame = Result.getOrThrow(wire.decodeRequests(JSON.stringify({ v: 1, client: "c", items: [{ id: "1", deadline: 1, body: sent }] })))
  return frame.form === "joined" ? frame.items[0]!.request : assert.fail("expected the joined form")
}

describe("what is read without a schema", () => {
  for (const labels of ["calendar", "opaque"] as const) {
    const wire = Wire.make({ labels })
    // A field that says nothing new is not as usual, so that the same body is read by its schema, and its fields as a request's.
    it.prop(`is what the schemas read, of any request: ${labels}`, [body], ([sent]) => {
      const [fast, slow] = [read(wire, sent), read(wire, { ...sent, revision: null })]
      assert.deepStrictEqual(fast, slow)
      if (Result.isSuccess(fast) && Result.isSuccess(slow)) {
        assert.isTrue(Equal.equals(fast.success, slow.success))
        assert.strictEqual(fast.success.chargeKey, slow.success.chargeKey)
        assert.deepStrictEqual(Object.keys(fast.success), Object.keys(slow.success))
      }
    }, { arbitrary: { runs: 1000 } })
  }

  it.prop("is what the schemas read, of requests that are all right", [request], ([sent]) => {
    const wire = Wire.make({})
    assert.deepStrictEqual(Result.getOrThrow(read(wire, JSON.parse(wire.encodeRequests("c", [{ id: "1", deadlineMs: 1, request: sent }])).items[0].body)), sent)
  })

  const decode = Schema.decodeUnknownResult(ChargeOutcome)
  const outcome = Arbitrary.map(
    Arbitrary.all([
      usualOr(oneOf("0123456789abcdef0123456789abcdef"), oneOf<unknown>("0123456789ABCDEF0123456789ABCDEF", "0123", "", null, undefined)),
      usualOr(oneOf(true, false), oneOf<unknown>("true", 0, null, undefined)), usualOr(Arbitrary.schema(anyText), oneOf<unknown>(null, 7, undefined)),
      usualOr(oneOf<unknown>(null, "ch_1"), oneOf<unknown>(7, undefined)), usualOr(oneOf<unknown>(0, 4900, -1), oddNumber), usualOr(oneOf("Succeeded"), oneOf<unknown>("succeeded", "Declined", undefined))
    ]),
    ([chargeKey, alreadySettled, paymentIntentId, chargeId, amountReceivedMinor, _tag]) => ({ _tag, chargeKey, alreadySettled, paymentIntentId, chargeId, amountReceivedMinor, more: 1 })
  )
  it.prop("is what the schemas read, of any answer", [outcome], ([sent]) => {
    const fast = readSucceeded({ outcome: sent })
    const slow = Result.getOrUndefined(decode(sent))
    assert.deepStrictEqual(fast, slow instanceof Succeeded ? slow : undefined)
    if (fast !== undefined) {
      assert.isTrue(Equal.equals(fast, slow))
      assert.strictEqual(JSON.stringify(writeSucceeded(fast)), JSON.stringify(Schema.encodeSync(ChargeOutcome)(fast)))
    }
  }, { arbitrary: { runs: 1000 } })
})
