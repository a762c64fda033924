/** What a ledger keeps of a decline: its evidence, the time of the next attempt, and a method that was chosen since. */
import { Ledger, RequiresAction } from "@purser/core"
import { assert, type Vitest } from "@effect/vitest"
import { Effect } from "effect"
import { chargeFor } from "../chargeFor.ts"
import { StoreClock } from "../StoreClock.ts"
import { assertTrail, attachTo, claim, claimedAndAttached, common, declined, longMs, many, mustClaim, mustFind, period, rejected, settle } from "./ledgerSteps.ts"

/** Adds the cases to a suite. */
export const declineCases = (it: Vitest.MethodsNonLive<Ledger | StoreClock>): void => {
  const due = (customer: string) =>
    Effect.flatMap(Ledger, (ledger) =>
      Effect.map(ledger.attemptsDue(many), (rows) => rows.filter(({ request }) => request.customerId === customer).map(({ attempt }) => attempt)))
  const reopen = (chargeKey: ReturnType<typeof chargeFor>["chargeKey"], paymentMethod?: string) =>
    Effect.flatMap(Ledger, (ledger) =>
      ledger.reopen({
        chargeKeys: [chargeKey], from: ["declined", "requires_action"], actor: "ada", reason: "again", ...(paymentMethod === undefined ? {} : { paymentMethod })
      }))

  it.effect("lists a declined charge when its next attempt is due, until it is reopened", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const request = chargeFor("next-soft", period)
      const charge = yield* claimedAndAttached(request, "pi_next")
      const outcome = declined(request.chargeKey, "pi_next")
      yield* ledger.settle({ lease: charge.lease, attempt: 1, paymentIntentId: "pi_next", outcome, nextAttemptAfterMs: longMs })
      assert.deepStrictEqual(yield* due("next-soft"), [])
      assert.isNumber((yield* mustFind(request.chargeKey)).nextAttemptAtMs)
      yield* StoreClock.advance(longMs)
      assert.deepStrictEqual(yield* due("next-soft"), [1])
      assert.strictEqual(yield* reopen(request.chargeKey), 1)
      assert.deepStrictEqual(yield* due("next-soft"), [])
      assert.isNull((yield* mustFind(request.chargeKey)).nextAttemptAtMs)

      const hard = chargeFor("next-hard", period)
      const other = yield* claimedAndAttached(hard, "pi_hard")
      yield* ledger.settle({ lease: other.lease, attempt: 1, paymentIntentId: "pi_hard", outcome: declined(hard.chargeKey, "pi_hard"), nextAttemptAfterMs: null })
      yield* StoreClock.advance(longMs)
      assert.deepStrictEqual(yield* due("next-hard"), [])
    }))

  it.effect("lists what is due longest first, no more than it is asked for, and nothing that a person is to look at", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const customers = ["due-second", "due-first", "due-third", "due-held", "due-refused"]
      const waitsMs = [20, 10, 30, 0, 0]
      for (const [index, customer] of customers.entries()) {
        const request = chargeFor(customer, period)
        const charge = yield* mustClaim(request)
        const outcome = customer === "due-refused" ? rejected(request.chargeKey) : declined(request.chargeKey, null)
        yield* ledger.settle({ lease: charge.lease, attempt: 1, paymentIntentId: null, outcome, nextAttemptAfterMs: waitsMs[index]! * 1000 })
        if (customer === "due-held") yield* ledger.quarantine(charge.lease, "a person looks")
      }
      yield* StoreClock.advance(longMs)
      const mine = Effect.map(ledger.attemptsDue(many), (rows) => rows.map(({ request }) => request.customerId).filter((customer) => customers.includes(customer)))
      assert.deepStrictEqual(yield* mine, ["due-first", "due-second", "due-third"])
      const all = (yield* ledger.attemptsDue(many)).map(({ chargeKey }) => chargeKey)
      assert.deepStrictEqual((yield* ledger.attemptsDue(2)).map(({ chargeKey }) => chargeKey), all.slice(0, 2))
      const found = chargeFor("due-first", period)
      yield* ledger.adopt({ request: found, paymentIntentId: "pi_due_first", paymentMethod: null, worker: "reconcile" })
      assert.deepStrictEqual([yield* mine, (yield* mustFind(found.chargeKey)).nextAttemptAtMs], [["due-second", "due-third"], null], "one that was found paid is not asked for")
    }))

  it.effect("is asked for again at once when a person says so, whatever was to be waited for", () =>
    Effect.gen(function*() {
      const request = chargeFor("at-once", period)
      const charge = yield* claimedAndAttached(request, "pi_at_once")
      yield* settle(charge, declined(request.chargeKey, "pi_at_once"), "pi_at_once", longMs)
      yield* reopen(request.chargeKey)
      assert.strictEqual((yield* mustClaim(request)).attempt, 2)
    }))

  it.effect("hands the failed charge of the last decline to the next attempt, and to whoever takes that over", () =>
    Effect.gen(function*() {
      const request = chargeFor("evidence", period)
      const charge = yield* claimedAndAttached(request, "pi_ev")
      assert.isNull(charge.declinedChargeId)
      yield* settle(charge, declined(request.chargeKey, "pi_ev"), "pi_ev")
      yield* reopen(request.chargeKey)
      const second = yield* mustClaim(request)
      assert.deepStrictEqual([second.attempt, second.declinedChargeId], [2, "ch_no"])
      yield* StoreClock.advance(longMs)
      const taken = (yield* (yield* Ledger).takeExpired("sweeper", many)).find(({ lease }) => lease.chargeKey === request.chargeKey)
      assert.strictEqual(taken?.declinedChargeId, "ch_no")
    }))

  it.effect("keeps the failed charge of a decline while later attempts come to no bank", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const request = chargeFor("evidence-kept", period)
      const { chargeKey } = request
      const again = (from: "declined" | "rejected") => ledger.reopen({ chargeKeys: [chargeKey], from: [from], actor: "ada", reason: "again" })
      const charge = yield* claimedAndAttached(request, "pi_kept")
      yield* settle(charge, declined(chargeKey, "pi_kept"), "pi_kept")
      yield* again("declined")
      yield* settle(yield* mustClaim(request), rejected(chargeKey), "pi_kept")
      assert.strictEqual(yield* again("rejected"), 1)
      const third = yield* mustClaim(request)
      assert.deepStrictEqual([third.attempt, third.paymentIntentId, third.declinedChargeId], [3, "pi_kept", "ch_no"], "else it is taken for this attempt's answer")
    }))

  it.effect("pays the next attempts with a chosen method, the terms staying as they are, also for a new object", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const request = chargeFor("chosen", period)
      const charge = yield* claimedAndAttached(request, "pi_ch")
      yield* settle(charge, declined(request.chargeKey, "pi_ch"), "pi_ch")
      assert.strictEqual(yield* reopen(request.chargeKey, "pm_new"), 1)
      const second = yield* mustClaim(request)
      assert.deepStrictEqual([second.paymentMethod, second.chosenMethod, second.paymentIntentId], ["pm_new", "pm_new", "pi_ch"])
      assert.isTrue(yield* ledger.renew({ lease: second.lease, generation: 1, paymentIntentId: "pi_ch" }))
      yield* StoreClock.advance(longMs)
      const third = yield* mustClaim(request)
      assert.deepStrictEqual([third.paymentMethod, third.generation], ["pm_new", 2])
      yield* attachTo(third, "pi_ch2", "pm_new")
      yield* settle(third, declined(request.chargeKey, "pi_ch2"), "pi_ch2")
      yield* reopen(request.chargeKey)
      const fourth = yield* mustClaim(request)
      assert.deepStrictEqual([fourth.paymentMethod, fourth.attempt], ["pm_new", 3])
      assert.strictEqual((yield* mustFind(request.chargeKey)).chosenMethod, "pm_new")
      assert.strictEqual((yield* claim(chargeFor("chosen", period, { paymentMethod: "pm_new" })))._tag, "Conflict")
      yield* assertTrail(request.chargeKey)
    }))

  it.effect("reopens a charge that waits for its customer", () =>
    Effect.gen(function*() {
      const request = chargeFor("waits-customer", period)
      const charge = yield* claimedAndAttached(request, "pi_w")
      const outcome = new RequiresAction({ ...common(request.chargeKey), paymentIntentId: "pi_w", detail: "3-D Secure", declinedChargeId: "ch_auth" })
      yield* settle(charge, outcome, "pi_w")
      assert.strictEqual(yield* reopen(request.chargeKey), 1)
      const second = yield* mustClaim(request)
      assert.deepStrictEqual([second.state, second.attempt, second.declinedChargeId], ["attached", 2, "ch_auth"])
    }))

  it.effect("takes no revision that nobody has opened", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* claim(chargeFor("unopened", period, { revision: 1 })), { _tag: "Unopened" })
    }))
}
