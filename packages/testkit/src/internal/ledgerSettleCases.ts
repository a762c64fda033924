/** What becomes a recorded fact, and what does not. */
import { Canceled, type ChargeKey, Ledger, Processing, RequiresAction } from "@purser/core"
import { assert, type Vitest } from "@effect/vitest"
import { Effect } from "effect"
import { chargeFor } from "../chargeFor.ts"
import { StoreClock } from "../StoreClock.ts"
import { assertTrail, attachTo, claim, claimedAndAttached, declined, longMs, many, mustClaim, mustFind, period, rejected, settle, succeeded, sweep, common } from "./ledgerSteps.ts"

/** Adds the cases to a suite. */
export const settleCases = (it: Vitest.MethodsNonLive<Ledger | StoreClock>): void => {
  for (
    const [label, make] of [
      ["succeeded", (key: ChargeKey) => succeeded(key, "pi_o")],
      ["declined", (key: ChargeKey) => declined(key, "pi_o")],
      ["requires_action", (key: ChargeKey) => new RequiresAction({ ...common(key), paymentIntentId: "pi_o", detail: "3-D Secure" })],
      ["processing", (key: ChargeKey) => new Processing({ ...common(key), paymentIntentId: "pi_o" })],
      ["rejected", rejected],
      ["canceled", (key: ChargeKey) => new Canceled({ ...common(key), paymentIntentId: "pi_o", detail: "canceled by hand" })]
    ] as const
  ) {
    it.effect(`gives a later delivery the recorded outcome: ${label}`, () =>
      Effect.gen(function*() {
        const request = chargeFor(`outcome-${label}`, period)
        const charge = yield* claimedAndAttached(request, "pi_o")
        const outcome = make(request.chargeKey)
        assert.deepStrictEqual(yield* settle(charge, outcome, "pi_o", 5000), { _tag: "Settled", outcome })
        assert.strictEqual((yield* mustFind(request.chargeKey)).state, label)
        const answer = yield* claim(request, "w2")
        assert.strictEqual(answer._tag, "AlreadySettled")
        if (answer._tag === "AlreadySettled") assert.deepStrictEqual({ ...answer.outcome }, { ...outcome, alreadySettled: true })
        yield* assertTrail(request.chargeKey)
      }))
  }

  it.effect("records a success of the attached object though the lease is another's", () =>
    Effect.gen(function*() {
      const request = chargeFor("truth", period)
      const old = yield* claimedAndAttached(request, "pi_truth")
      yield* StoreClock.advance(longMs)
      const now = yield* mustClaim(request, "w2")
      assert.deepStrictEqual(yield* settle(old, declined(request.chargeKey, "pi_truth"), "pi_truth"), { _tag: "LeaseLost" })
      const truth = succeeded(request.chargeKey, "pi_truth")
      assert.deepStrictEqual(yield* settle(old, truth, "pi_truth"), { _tag: "Settled", outcome: truth, late: true })
      const answer = yield* settle(now, declined(request.chargeKey, "pi_truth"), "pi_truth")
      assert.strictEqual(answer._tag, "Recorded")
      assert.strictEqual((yield* mustFind(request.chargeKey)).state, "succeeded")
      assert.deepStrictEqual(yield* sweep([request.chargeKey]), [])
    }))

  it.effect("records a late success over a decline, and gives no room back for it", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const request = chargeFor("late-success", period)
      const charge = yield* claimedAndAttached(request, "pi_late")
      yield* settle(charge, declined(request.chargeKey, "pi_late"), "pi_late")
      const late = succeeded(request.chargeKey, "pi_late")
      assert.deepStrictEqual(yield* settle(charge, late, "pi_late"), { _tag: "Settled", outcome: late, late: true })
      assert.strictEqual((yield* mustFind(request.chargeKey)).state, "succeeded")
      assert.notInclude((yield* ledger.releaseDue(many)).map((due) => due.chargeKey), request.chargeKey)
      yield* assertTrail(request.chargeKey)
    }))

  it.effect("never replaces a success", () =>
    Effect.gen(function*() {
      const request = chargeFor("final", period)
      const charge = yield* claimedAndAttached(request, "pi_final")
      yield* settle(charge, succeeded(request.chargeKey, "pi_final"), "pi_final")
      for (const other of [declined(request.chargeKey, "pi_final"), rejected(request.chargeKey), succeeded(request.chargeKey, "pi_other")]) {
        const answer = yield* settle(charge, other, "pi_final")
        assert.strictEqual(answer._tag, "Recorded")
        if (answer._tag === "Recorded" && answer.outcome._tag === "Succeeded") assert.strictEqual(answer.outcome.paymentIntentId, "pi_final")
      }
    }))

  it.effect("takes no payment of an unnamed or another object for a proof, and renews nothing that is over", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const unnamed = yield* mustClaim(chargeFor("unnamed", period))
      yield* StoreClock.advance(longMs)
      yield* mustClaim(unnamed.request, "w2")
      assert.deepStrictEqual(yield* settle(unnamed, succeeded(unnamed.lease.chargeKey, "pi_unnamed"), null), { _tag: "LeaseLost" })
      const named = yield* claimedAndAttached(chargeFor("named-other", period), "pi_named")
      yield* StoreClock.advance(longMs)
      yield* mustClaim(named.request, "w2")
      assert.deepStrictEqual(yield* settle(named, succeeded(named.lease.chargeKey, "pi_other"), "pi_other"), { _tag: "LeaseLost" })
      const over = yield* claimedAndAttached(chargeFor("over", period), "pi_over")
      yield* settle(over, succeeded(over.lease.chargeKey, "pi_over"), "pi_over")
      assert.isFalse(yield* ledger.renew({ lease: over.lease, generation: 1, paymentIntentId: "pi_over" }))
      assert.strictEqual((yield* mustFind(over.lease.chargeKey)).state, "succeeded")
    }))

  it.effect("ties no object to a charge that was refused without one", () =>
    Effect.gen(function*() {
      const charge = yield* mustClaim(chargeFor("refused-bare", period))
      yield* settle(charge, rejected(charge.lease.chargeKey))
      assert.deepStrictEqual(yield* attachTo(charge, "pi_late"), { _tag: "Lost", winnerId: null })
      assert.strictEqual((yield* mustFind(charge.lease.chargeKey)).state, "rejected")
    }))

  it.effect("records nothing of another attempt", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const request = chargeFor("attempt", period)
      const charge = yield* claimedAndAttached(request, "pi_attempt")
      const answer = yield* ledger.settle({ lease: charge.lease, attempt: 2, paymentIntentId: "pi_attempt", outcome: declined(request.chargeKey, "pi_attempt") })
      assert.strictEqual(answer._tag, "LeaseLost")
    }))

  it.effect("comes back to a processing charge when it is time, and then settles it", () =>
    Effect.gen(function*() {
      const request = chargeFor("processing", period)
      const keys = [request.chargeKey]
      const charge = yield* claimedAndAttached(request, "pi_slow")
      const processing = new Processing({ ...common(request.chargeKey), paymentIntentId: "pi_slow" })
      assert.strictEqual((yield* settle(charge, processing, "pi_slow", longMs * 2))._tag, "Settled")
      yield* StoreClock.advance(longMs)
      assert.deepStrictEqual(yield* sweep(keys), [])
      yield* StoreClock.advance(longMs)
      const [taken] = yield* sweep(keys)
      assert.deepStrictEqual([taken?.state, taken?.paymentIntentId, taken?.resumed], ["processing", "pi_slow", true])
      assert.strictEqual((yield* settle(taken!, processing, "pi_slow", longMs))._tag, "Recorded")
      assert.deepStrictEqual(yield* sweep(keys), [])
      yield* StoreClock.advance(longMs)
      const [again] = yield* sweep(keys)
      assert.strictEqual((yield* settle(again!, succeeded(request.chargeKey, "pi_slow"), "pi_slow"))._tag, "Settled")
      assert.deepStrictEqual(yield* sweep(keys), [])
      yield* assertTrail(request.chargeKey)
    }))
}
