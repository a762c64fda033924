/** How long a charge is held, and who takes it up after: extend, hand back, renew, quarantine, sweep. */
import { type ChargeKey, Ledger } from "@purser/core"
import { assert, type Vitest } from "@effect/vitest"
import { Effect } from "effect"
import { chargeFor } from "../chargeFor.ts"
import { StoreClock } from "../StoreClock.ts"
import { assertTrail, attachTo, claim, claimedAndAttached, longMs, many, mustClaim, mustFind, period, rejected, settle, sweep } from "./ledgerSteps.ts"

/** Adds the cases to a suite. */
export const leaseCases = (it: Vitest.MethodsNonLive<Ledger | StoreClock>): void => {
  it.effect("extends a lease", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const charge = yield* mustClaim(chargeFor("extended", period))
      yield* StoreClock.advance(charge.leaseLeftMs * 0.75)
      assert.isTrue(yield* ledger.extend(charge.lease))
      yield* StoreClock.advance(charge.leaseLeftMs * 0.75)
      assert.deepStrictEqual(yield* sweep([charge.lease.chargeKey]), [])
      yield* StoreClock.advance(charge.leaseLeftMs)
      assert.strictEqual((yield* sweep([charge.lease.chargeKey])).length, 1)
      assert.isFalse(yield* ledger.extend(charge.lease))
    }))

  it.effect("extends no lease to an earlier end", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const charge = yield* mustClaim(chargeFor("extended-later", period))
      yield* ledger.handBack(charge.lease, longMs * 2, "rate limited")
      assert.isTrue(yield* ledger.extend(charge.lease))
      yield* StoreClock.advance(longMs)
      assert.deepStrictEqual(yield* sweep([charge.lease.chargeKey]), [])
      yield* StoreClock.advance(longMs)
      assert.strictEqual((yield* sweep([charge.lease.chargeKey])).length, 1)
    }))

  it.effect("extends no settled charge", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const charge = yield* mustClaim(chargeFor("extended-settled", period))
      yield* settle(charge, rejected(charge.lease.chargeKey))
      assert.isFalse(yield* ledger.extend(charge.lease))
      assert.isFalse(yield* ledger.handBack(charge.lease, 0, "nothing to give back"))
      assert.strictEqual((yield* mustFind(charge.lease.chargeKey)).state, "rejected")
      assert.deepStrictEqual(yield* sweep([charge.lease.chargeKey]), [])
    }))

  it.effect("hands a charge back for after a while, and fences the giver off once it is taken", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const request = chargeFor("handed", period)
      const first = yield* mustClaim(request)
      assert.isTrue(yield* ledger.handBack(first.lease, longMs, "rate limited"))
      assert.strictEqual((yield* claim(request, "w2"))._tag, "InProgress")
      yield* StoreClock.advance(longMs)
      const second = yield* mustClaim(request, "w2")
      assert.isTrue(second.resumed)
      assert.strictEqual((yield* attachTo(first, "pi_first"))._tag, "Lost")
      assert.isFalse(yield* ledger.handBack(first.lease, 0, "too late"))
      yield* ledger.handBack(second.lease, 0, "stopped")
      assert.isTrue((yield* mustClaim(request, "w3")).resumed)
      const events = yield* assertTrail(request.chargeKey)
      assert.include(events.map((event) => event.detail), "rate limited")
    }))

  it.effect("renews after a canceled object: next generation, none attached, lease kept", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const request = chargeFor("renewed", period, { paymentMethod: null })
      const charge = yield* mustClaim(request)
      yield* attachTo(charge, "pi_g1", "pm_default")
      const input = { lease: charge.lease, generation: 1, paymentIntentId: "pi_g1" }
      assert.isFalse(yield* ledger.renew({ ...input, generation: 2 }))
      assert.isFalse(yield* ledger.renew({ ...input, paymentIntentId: "pi_other" }))
      assert.isTrue(yield* ledger.renew(input))
      assert.isFalse(yield* ledger.renew(input))
      const record = yield* mustFind(request.chargeKey)
      assert.deepStrictEqual([record.state, record.generation, record.paymentIntentId], ["claimed", 2, null])
      assert.strictEqual((yield* claim(request, "w2"))._tag, "InProgress")
      assert.strictEqual((yield* attachTo(charge, "pi_g1"))._tag, "Lost")
      assert.strictEqual((yield* attachTo({ ...charge, generation: 2 }, "pi_g2"))._tag, "Attached")
      yield* assertTrail(request.chargeKey)
    }))

  it.effect("keeps a quarantined charge from claims and sweeps", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const request = chargeFor("quarantined", period)
      const charge = yield* claimedAndAttached(request, "pi_q")
      yield* ledger.quarantine(charge.lease, "amount is 1, not 1000")
      yield* StoreClock.advance(longMs)
      assert.deepStrictEqual(yield* claim(request, "w2"), { _tag: "Quarantined", detail: "amount is 1, not 1000" })
      assert.strictEqual((yield* claim(chargeFor("quarantined", period, { amountMinor: 5 })))._tag, "Conflict")
      assert.deepStrictEqual(yield* sweep([request.chargeKey]), [])
      assert.strictEqual((yield* mustFind(request.chargeKey)).quarantine, "amount is 1, not 1000")
      yield* assertTrail(request.chargeKey)
    }))

  it.effect("sweeps what ran out, once, oldest first, and nothing that is held", () =>
    Effect.gen(function*() {
      const requests = Array.from({ length: 6 }, (_, index) => chargeFor(`swept-${index}`, period))
      const keys = requests.map((request) => request.chargeKey)
      for (const request of requests.slice(0, 5)) {
        yield* mustClaim(request)
        yield* StoreClock.advance(10)
      }
      yield* StoreClock.advance(longMs)
      yield* mustClaim(requests[5]!)
      const taken = yield* sweep(keys)
      assert.deepStrictEqual(taken.map((charge) => charge.lease.chargeKey), keys.slice(0, 5))
      assert.isTrue(taken.every((charge) => charge.resumed && charge.lease.worker === "sweeper" && charge.leaseLeftMs > 0))
      assert.deepStrictEqual(taken.map((charge) => ({ ...charge.request })), requests.slice(0, 5).map((request) => ({ ...request })))
      assert.deepStrictEqual(yield* sweep(keys), [])
    }))

  it.effect("sweeps no more than it is asked for: those that ran out first, whenever they were planned", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const charges = yield* Effect.forEach(["a", "b", "c", "d", "e"], (name) => mustClaim(chargeFor(`few-${name}`, period)))
      // What other tests left behind is held from here on, so that only these can run out.
      yield* ledger.takeExpired("before", many)
      const order = [2, 4, 0, 3, 1].map((index) => charges[index]!.lease)
      for (const lease of order) {
        yield* ledger.handBack(lease, 0, "stopped")
        yield* StoreClock.advance(10)
      }
      const take = (limit: number) => Effect.map(ledger.takeExpired("sweeper", limit), (taken) => taken.map(({ lease }) => lease.chargeKey))
      const keys = order.map(({ chargeKey }) => chargeKey)
      assert.deepStrictEqual(yield* take(2), keys.slice(0, 2))
      assert.deepStrictEqual(yield* take(1), keys.slice(2, 3))
      assert.deepStrictEqual(yield* take(many), keys.slice(3))
      assert.deepStrictEqual(yield* take(many), [])
    }))

  it.effect("gives no row to two sweepers, and none to a claim as well", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const requests = Array.from({ length: 120 }, (_, index) => chargeFor(`shared-${index}`, period))
      const keys = new Set<string>(requests.map((request) => request.chargeKey))
      yield* Effect.forEach(requests, (request) => mustClaim(request), { concurrency: "unbounded" })
      yield* StoreClock.advance(longMs)
      const [swept, claimed] = yield* Effect.all([
        Effect.all(Array.from({ length: 6 }, (_, index) => ledger.takeExpired(`s${index}`, 50)), { concurrency: "unbounded" }),
        Effect.forEach(requests, (request) => claim(request, "claimer"), { concurrency: "unbounded" })
      ], { concurrency: "unbounded" })
      const left = yield* sweep([...keys] as Array<ChargeKey>)
      const all = [
        ...swept.flat().map((charge) => charge.lease.chargeKey).filter((key) => keys.has(key)),
        ...claimed.flatMap((answer) => answer._tag === "Claimed" ? [answer.charge.lease.chargeKey] : []),
        ...left.map((charge) => charge.lease.chargeKey)
      ]
      assert.strictEqual(all.length, 120)
      assert.strictEqual(new Set(all).size, 120)
    }))
}
