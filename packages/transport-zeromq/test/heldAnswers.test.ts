import { assert, describe, it } from "@effect/vitest"
import {
  Backpressure, CardDeclined, ChargeConflict, ChargeError, ChargeInProgress, type ChargeReply, GatewayUnavailable, LedgerError, MalformedMessage, PeerUnreachable,
  type PipelineError, type ReplyItem, TransportError, type TransportErrorReason
} from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { Result } from "effect"
import { isDecisive, makeHeldAnswers } from "../src/internal/heldAnswers.ts"
import { paid } from "./support.ts"

const request = chargeFor("c", "2026-07")
const chargeKey = request.chargeKey
const item = (reply: ChargeReply, id = "1"): ReplyItem => ({ id, reply })
const success = item(Result.succeed(paid(request)))
const fails = (error: PipelineError | TransportError) => item(Result.fail(error))
const ledger = (reason: LedgerError["reason"]) => fails(new LedgerError({ reason, chargeKey }))
const refuses = (reason: TransportErrorReason) => fails(new TransportError({ reason, chargeKey }))
const terms = { amountMinor: 1000, currency: "usd", stripeCustomerId: "cus_1", paymentMethod: null }
const inProgress = ledger(new ChargeInProgress({ leaseLeftMs: 1500 }))
const unreachable = fails(new ChargeError({ reason: new GatewayUnavailable({ operation: "confirm", status: 502, replayed: false, detail: "" }), chargeKey, requestId: null }))
const busy = refuses(new Backpressure({ endpoint: "w", window: 1 }))
const closing = refuses(new PeerUnreachable({ endpoint: "w", detail: "closing" }))

const holding = (workers: number) => {
  const held = makeHeldAnswers<string>({ reached: () => workers, all: () => workers, window: 2 })
  held.publish("1", "b", 1000, 1000)
  return held
}

describe("which of several answers is the answer", () => {
  it("is a fact at once, whatever else was said before", () => {
    const held = holding(3)
    assert.isUndefined(held.take("a", inProgress))
    assert.strictEqual(held.take("b", success), success)
    assert.deepStrictEqual(held.open(), [])
    // Later ones belong to nothing that waits here.
    assert.strictEqual(held.take("c", inProgress), inProgress)
    for (const fact of [
      fails(new ChargeError({ reason: new CardDeclined({ code: "card_declined", declineCode: null, detail: "" }), chargeKey, requestId: null })),
      ledger(new ChargeConflict({ expected: terms, actual: { ...terms, amountMinor: 1 } }))
    ]) {
      assert.isTrue(isDecisive(fact))
      assert.strictEqual(holding(9).take("a", fact), fact)
    }
  })

  it("is no refusal of one worker while another may still charge", () => {
    for (const refusal of [inProgress, unreachable, busy, closing, refuses(new MalformedMessage({ detail: "an older version", field: null }))]) {
      const held = holding(2)
      assert.isUndefined(held.take("a", refusal))
      // The same worker again is no second one.
      assert.isUndefined(held.take("a", refusal))
      assert.strictEqual(held.take("b", success), success)
    }
  })

  it("is a refusal when every worker has refused, and never says not charged when one does not know", () => {
    for (const [first, second, expected] of [
      [busy, unreachable, unreachable], [unreachable, busy, unreachable], [inProgress, busy, inProgress], [closing, inProgress, inProgress],
      [inProgress, unreachable, unreachable], [busy, closing, busy]
    ] as const) {
      const held = holding(2)
      assert.isUndefined(held.take("a", first))
      assert.strictEqual(held.take("b", second), expected)
    }
    assert.strictEqual(holding(1).take("a", inProgress), inProgress)
    assert.strictEqual(holding(0).take("a", inProgress), inProgress)
  })

  it("is not \"another worker has it\" while a worker that is not connected may be the other one", () => {
    const counts = { reached: () => 2, all: () => 3, window: 2 }
    const held = makeHeldAnswers<string>(counts)
    held.publish("1", "b", 1000, 1000)
    assert.isUndefined(held.take("a", inProgress))
    assert.isUndefined(held.take("b", busy))
    assert.strictEqual(held.take("c", success), success)
    // A refusal alone does not wait for who is not there.
    held.publish("1", "b", 1000, 1000)
    assert.isUndefined(held.take("a", busy))
    assert.strictEqual(held.take("b", closing), busy)
  })

  it("is not settled early because a worker went away, and not withheld beyond the deadline", () => {
    let workers = 2
    const held = makeHeldAnswers<string>({ reached: () => workers, all: () => workers, window: 2 })
    held.publish("1", "b", 1000, 1000)
    workers = 1
    assert.isUndefined(held.take("a", inProgress))
    assert.deepStrictEqual(held.due(1899), [])
    assert.deepStrictEqual(held.due(1900), [inProgress])
    assert.strictEqual(held.size(), 0)
  })

  it("is nobody's when nobody answered, and a new attempt begins anew", () => {
    const held = holding(2)
    assert.isUndefined(held.take("a", busy))
    held.publish("1", "b", 2000, 1000)
    assert.isUndefined(held.take("b", closing))
    assert.deepStrictEqual(held.due(2900), [closing])
    held.publish("2", "c", 3000, 1000)
    assert.deepStrictEqual(held.due(3999), [])
    assert.strictEqual(held.size(), 1)
    assert.deepStrictEqual(held.due(4000), [])
    assert.strictEqual(held.size(), 0)
  })
})
