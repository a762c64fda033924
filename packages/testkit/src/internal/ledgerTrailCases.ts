/** The trail of a charge, word by word: every store tells the same story of the same life, since reports and people read it. */
import { Canceled, Ledger, Principal, RequiresAction } from "@purser/core"
import { assert, type Vitest } from "@effect/vitest"
import { Effect } from "effect"
import { chargeFor } from "../chargeFor.ts"
import { StoreClock } from "../StoreClock.ts"
import { assertTrail, attachTo, common, declined, longMs, mustClaim, period, rejected, settle, succeeded, sweep } from "./ledgerSteps.ts"

type Request = ReturnType<typeof chargeFor>

/** From, to, by whom, in which attempt, in words. */
const told = ({ chargeKey }: Request) =>
  Effect.map(assertTrail(chargeKey), (trail) => trail.map(({ attempt, detail, from, to, worker }) => [from, to, worker, attempt, detail]))

/** Adds the cases to a suite. */
export const trailCases = (it: Vitest.MethodsNonLive<Ledger | StoreClock>): void => {
  it.effect("tells each step of a long life: who, from what to what, in which attempt, and why", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const request = chargeFor("trail-long", period)
      const { chargeKey } = request
      const first = yield* mustClaim(request)
      yield* attachTo(first, "pi_trail_1")
      yield* ledger.handBack(first.lease, 0, "rate limited")
      const second = yield* mustClaim(request, "w2")
      yield* settle(second, declined(chargeKey, "pi_trail_1"), "pi_trail_1")
      yield* ledger.reopen({ chargeKeys: [chargeKey], from: ["declined"], actor: "ada", reason: "new card", paymentMethod: "pm_new" })
      const third = yield* mustClaim(request, "w3")
      assert.isTrue(yield* ledger.renew({ lease: third.lease, generation: 1, paymentIntentId: "pi_trail_1" }))
      yield* attachTo({ ...third, generation: 2 }, "pi_trail_2")
      yield* settle(third, new RequiresAction({ ...common(chargeKey), paymentIntentId: "pi_trail_2", detail: "3-D Secure" }), "pi_trail_2")
      yield* ledger.takeWaiting(chargeKey, "webhooks")
      const last = yield* ledger.takeWaiting(chargeKey, "again")
      yield* ledger.quarantine(last!.lease, "amount is 1, not 1000")
      assert.deepStrictEqual(yield* told(request), [
        [null, "claimed", "w1", 1, null],
        ["claimed", "attached", "w1", 1, "pi_trail_1"],
        ["attached", "attached", "w1", 1, "rate limited"],
        ["attached", "attached", "w2", 1, "taken over"],
        ["attached", "declined", "w2", 1, "no funds"],
        ["declined", "attached", null, 2, "reopened by ada: new card (with pm_new)"],
        ["attached", "attached", "w3", 2, "taken over"],
        ["attached", "claimed", "w3", 2, "generation 2"],
        ["claimed", "attached", "w3", 2, "pi_trail_2"],
        ["attached", "requires_action", "w3", 2, "3-D Secure"],
        ["requires_action", "processing", "webhooks", 2, "its object has moved on"],
        ["processing", "processing", "again", 2, "taken over"],
        ["processing", "processing", "again", 2, "quarantined: amount is 1, not 1000"]
      ])
      const times = (yield* ledger.events(chargeKey)).map(({ atMs }) => atMs)
      assert.deepStrictEqual(times, times.toSorted((a, b) => a - b))
    }))

  it.effect("tells nothing of what did not happen: a quarantined charge is not held any more, and is quarantined once", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const request = chargeFor("trail-quarantine", period)
      const { lease } = yield* mustClaim(request)
      yield* ledger.quarantine(lease, "first")
      const before = yield* told(request)
      assert.isFalse(yield* ledger.extend(lease))
      yield* ledger.handBack(lease, 0, "too late")
      yield* ledger.quarantine(lease, "second")
      assert.deepStrictEqual(yield* told(request), before)
      assert.deepStrictEqual(before.at(-1), ["claimed", "claimed", "w1", 1, "quarantined: first"])
    }))

  it.effect("tells a refusal that was taken back, and who asked for the charge", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const request = chargeFor("trail-reopened", period)
      yield* settle(yield* mustClaim(request), rejected(request.chargeKey))
      yield* ledger.reopen({ chargeKeys: [request.chargeKey], from: ["rejected"], actor: "ada", reason: "cap raised" })
      yield* Effect.provideService(mustClaim(request, "w2"), Principal, "alice")
      assert.deepStrictEqual(yield* told(request), [
        [null, "claimed", "w1", 1, null],
        ["claimed", "rejected", "w1", 1, "does not fit"],
        ["rejected", "planned", null, 2, "reopened by ada: cap raised"],
        ["planned", "claimed", "w2", 2, null]
      ])
      assert.deepStrictEqual((yield* ledger.events(request.chargeKey)).map(({ principal }) => principal), [null, null, null, "alice"])
    }))

  it.effect("tells a payment that came after a refusal, and one that was found", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const refusals = { declined, rejected, canceled: (key: Request["chargeKey"], id: string) => new Canceled({ ...common(key), paymentIntentId: id, detail: "by hand" }) }
      for (const [state, refusal] of Object.entries(refusals)) {
        const late = chargeFor(`trail-late-${state}`, period)
        const id = `pi_trail_late_${state}`
        const charge = yield* mustClaim(late)
        yield* attachTo(charge, id)
        yield* settle(charge, refusal(late.chargeKey, id), id)
        yield* settle(charge, succeeded(late.chargeKey, id), id)
        assert.deepStrictEqual((yield* told(late)).at(-1), [state, "succeeded", "w1", 1, `late success after ${state}`])
      }
      const found = chargeFor("trail-found", period)
      yield* ledger.adopt({ request: found, paymentIntentId: "pi_trail_found", paymentMethod: null, worker: "reconcile" })
      yield* StoreClock.advance(longMs)
      const [swept] = yield* sweep([found.chargeKey])
      yield* settle(swept!, succeeded(found.chargeKey, "pi_trail_found"), "pi_trail_found")
      assert.deepStrictEqual(yield* told(found), [
        [null, "processing", "reconcile", 1, "paid at the processor as pi_trail_found"],
        ["processing", "processing", "sweeper", 1, "taken over"],
        ["processing", "succeeded", "sweeper", 1, null]
      ])
    }))
}
