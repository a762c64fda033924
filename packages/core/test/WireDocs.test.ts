/** The examples of docs/wire.md are what the codec reads and writes. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { readFileSync } from "node:fs"
import { CapExceeded, type ChargeReply, chargeKeyOf, Declined, defaultNamespace, Processing, SpendCapError, Succeeded, Wire } from "../src/index.ts"

const page = readFileSync(new URL("../../../docs/wire.md", import.meta.url), "utf8")
const examples = (kind: string) => [...page.matchAll(/^```json (\S+)\n([^]*?)^```$/gm)].filter(([, name]) => name === kind).map(([, , text]) => text!)
const json = (text: string): unknown => JSON.parse(text)

const wire = Wire.make({})
const chargeKey = chargeKeyOf({ namespace: defaultNamespace, customerId: "cust_123", billingPeriod: "Q3-2026", item: "seat-1" })
const paid = { chargeKey, alreadySettled: false, paymentIntentId: "pi_1", chargeId: "ch_1", amountReceivedMinor: 1999 }
const succeeded = Result.succeed(new Succeeded(paid))
const declined = Result.succeed(new Declined({
  chargeKey, alreadySettled: false, paymentIntentId: "pi_2", code: "card_declined", declineCode: "expired_card", detail: "Your card has expired."
}))
const overCap = Result.fail(new SpendCapError({
  reason: new CapExceeded({ billingPeriod: "Q3-2026", currency: "usd", capMinor: 11000, reservedMinor: 10000, requestedMinor: 1999 }), chargeKey
}))

describe("docs/wire.md", () => {
  it("shows a joined request that is what we send", () => {
    const [text] = examples("joined-request")
    const frame = Result.getOrThrow(wire.decodeRequests(text!))
    if (frame.form !== "joined") return assert.fail("expected the joined form")
    const items = frame.items.map((item) => ({ ...item, request: Result.getOrThrow(item.request) }))
    assert.deepStrictEqual(json(wire.encodeRequests(frame.client, items)), json(text!))
    assert.strictEqual(items[0]!.request.chargeKey, chargeKey)
  })

  it("shows joined answers that are what we send", () => {
    const replies = [{ id: "m1", reply: succeeded }, { id: "m2", reply: declined }, { id: "m3", reply: overCap }]
    assert.deepStrictEqual(json(examples("joined-reply")[0]!), json(wire.encodeReplies(replies)))
  })

  it("shows plain answers that are what we send", () => {
    const replies: ReadonlyArray<ChargeReply> = [
      succeeded, Result.succeed(new Succeeded({ ...paid, alreadySettled: true })),
      Result.succeed(new Processing({ chargeKey, alreadySettled: false, paymentIntentId: "pi_1" })), declined, overCap
    ]
    assert.deepStrictEqual(examples("plain-reply").map(json), replies.map((reply) => json(wire.encodePlainReply(reply, 7))))
  })

  it("shows a plain request that is read, and the answer to a malformed one", () => {
    const [text] = examples("plain-request")
    const answer = (request: string) => {
      const frame = Result.getOrThrow(wire.decodeRequests(request))
      if (frame.form !== "plain") return assert.fail("expected the plain form")
      return Result.isSuccess(frame.request) ? "read" : json(wire.encodePlainReply(Result.fail(frame.request.failure), frame.seq))
    }
    assert.strictEqual(answer(text!), "read")
    assert.deepStrictEqual(answer(text!.replace("Q3-2026", "2026-13")), json(examples("plain-malformed")[0]!))
  })
})
