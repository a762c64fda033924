/** What follows a settlement: room given back, reopening by a person, reports. */
import { Canceled, type ClaimedCharge, Ledger, Rejected } from "@purser/core"
import { assert, type Vitest } from "@effect/vitest"
import { Effect } from "effect"
import { chargeFor } from "../chargeFor.ts"
import type { StoreClock } from "../StoreClock.ts"
import { assertTrail, attachTo, claim, claimedAndAttached, common, declined, longMs, many, mustClaim, mustFind, period, rejected, settle, succeeded, sweep } from "./ledgerSteps.ts"

/** Adds the cases to a suite. */
export const actCases = (it: Vitest.MethodsNonLive<Ledger | StoreClock>): void => {
  it.effect("lists room to be given back until it is marked, for this attempt only", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const due = Effect.map(ledger.releaseDue(many), (rows) => rows.filter((row) => keys.includes(row.chargeKey)))
      const requests = ["due-declined", "due-rejected", "due-canceled", "due-paid"].map((customer) => chargeFor(customer, period))
      const keys = requests.map((request) => request.chargeKey)
      const charges = yield* Effect.forEach(requests, (request) => mustClaim(request))
      yield* settle(charges[0]!, declined(keys[0]!, null))
      yield* settle(charges[1]!, rejected(keys[1]!))
      yield* settle(charges[2]!, new Canceled({ ...common(keys[2]!), paymentIntentId: null, detail: "by hand" }))
      yield* settle(charges[3]!, succeeded(keys[3]!, "pi_due"))
      assert.sameMembers((yield* due).map((row) => row.chargeKey), keys.slice(0, 3))
      assert.isTrue((yield* due).every((row) => row.attempt === 1))
      yield* ledger.markReleased(keys[0]!, 1)
      yield* ledger.markReleased(keys[0]!, 1)
      yield* ledger.markReleased(keys[1]!, 2)
      assert.sameMembers((yield* due).map((row) => row.chargeKey), [keys[1]!, keys[2]!])
      assert.strictEqual((yield* ledger.releaseDue(1)).length, 1)
      yield* ledger.reopen({ chargeKeys: [keys[1]!], from: ["rejected"], actor: "ada", reason: "again" })
      assert.deepStrictEqual((yield* due).map((row) => row.chargeKey), [keys[2]!], "what is asked for again needs its room")
    }))

  it.effect("reopens declined and rejected charges only, with the next attempt, who and why", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const requests = ["re-declined", "re-declined-pi", "re-rejected", "re-paid", "re-held"].map((customer) => chargeFor(customer, period))
      const keys = requests.map((request) => request.chargeKey)
      const charges = yield* Effect.forEach(requests, (request) => mustClaim(request))
      yield* settle(charges[0]!, declined(keys[0]!, null))
      yield* attachTo(charges[1]!, "pi_re")
      yield* settle(charges[1]!, declined(keys[1]!, "pi_re"), "pi_re")
      yield* settle(charges[2]!, rejected(keys[2]!))
      yield* attachTo(charges[3]!, "pi_paid")
      yield* settle(charges[3]!, succeeded(keys[3]!, "pi_paid"), "pi_paid")
      const act = { chargeKeys: keys, actor: "ada", reason: "new card" }
      assert.strictEqual(yield* ledger.reopen({ ...act, from: ["declined"], attempt: 2 }), 0)
      assert.strictEqual(yield* ledger.reopen({ ...act, from: ["declined"], attempt: 1 }), 2)
      assert.strictEqual(yield* ledger.reopen({ ...act, from: ["declined", "rejected"] }), 1)
      assert.strictEqual(yield* ledger.reopen({ ...act, from: ["declined", "rejected"] }), 0)
      const records = yield* Effect.forEach(keys, mustFind)
      assert.deepStrictEqual(
        records.map((record) => [record.state, record.attempt, record.outcome?._tag ?? null]),
        [["planned", 2, null], ["attached", 2, null], ["planned", 2, null], ["succeeded", 1, "Succeeded"], ["claimed", 1, null]]
      )
      const events = yield* assertTrail(keys[0]!)
      assert.match(events.at(-1)!.detail!, /ada.*new card/)
      assert.isFalse((yield* ledger.releaseDue(many)).some((row) => keys.includes(row.chargeKey)))
      const again = yield* mustClaim(requests[0]!, "w2")
      assert.deepStrictEqual([again.state, again.attempt, again.resumed], ["claimed", 2, true])
      const [swept] = yield* sweep([keys[1]!])
      assert.deepStrictEqual([swept?.state, swept?.attempt, swept?.paymentIntentId], ["attached", 2, "pi_re"])
      yield* assertTrail(keys[1]!)
    }))

  it.effect("what was read stays as it was read", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const request = chargeFor("re-read", period)
      const { chargeKey } = request
      const { attempt, lease } = yield* claimedAndAttached(request, "pi_read")
      yield* ledger.settle({ lease, attempt, paymentIntentId: "pi_read", outcome: declined(chargeKey, "pi_read"), nextAttemptAfterMs: 0 })
      const found = [yield* mustFind(chargeKey), ...yield* ledger.page(period, "", many), ...yield* ledger.attemptsDue(many)].filter((record) => record.chargeKey === chargeKey)
      const seen = found.map((record) => ({ ...record }))
      yield* ledger.reopen({ chargeKeys: [chargeKey], from: ["declined"], attempt, actor: "ada", reason: "again" })
      yield* settle(yield* mustClaim(request, "w2"), declined(chargeKey, "pi_read"), "pi_read")
      assert.deepStrictEqual(found.map((record) => ({ ...record })), seen)
      assert.deepStrictEqual(found.map((record) => [record.state, record.attempt]), Array.from({ length: 3 }, () => ["declined", 1]))
      assert.strictEqual((yield* mustFind(chargeKey)).attempt, 2)
    }))

  it.effect("forgets the default method that a reopened attempt was declined with, and keeps a requested one", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const requests = [chargeFor("re-default", period, { paymentMethod: null }), chargeFor("re-requested", period, { paymentMethod: "pm_asked" })]
      for (const [index, request] of requests.entries()) {
        const charge = yield* mustClaim(request)
        yield* attachTo(charge, `pi_method_${index}`, request.paymentMethod ?? "pm_default")
        yield* settle(charge, declined(request.chargeKey, `pi_method_${index}`), `pi_method_${index}`)
      }
      yield* ledger.reopen({ chargeKeys: requests.map((request) => request.chargeKey), from: ["declined"], actor: "ada", reason: "new card" })
      const claimed = yield* Effect.forEach(requests, (request) => mustClaim(request, "w2"))
      assert.deepStrictEqual(claimed.map((charge) => charge.paymentMethod), [null, "pm_asked"])
    }))

  it.effect("lets who settled a charge before change nothing once it was reopened", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const request = chargeFor("reopened-fenced", period)
      const charge = yield* mustClaim(request)
      yield* settle(charge, rejected(request.chargeKey))
      yield* ledger.reopen({ chargeKeys: [request.chargeKey], from: ["rejected"], actor: "ada", reason: "cap raised" })
      assert.deepStrictEqual(yield* settle(charge, rejected(request.chargeKey)), { _tag: "LeaseLost" })
      assert.deepStrictEqual(yield* settle({ ...charge, attempt: 2 }, rejected(request.chargeKey)), { _tag: "LeaseLost" })
      yield* ledger.handBack(charge.lease, longMs, "late")
      assert.strictEqual((yield* claim(request, "w2"))._tag, "Claimed")
    }))

  it.effect("keeps text that would break a statement", () =>
    Effect.gen(function*() {
      const request = chargeFor("O'Brien \"x\" \\ {a,b} 北京", period, { item: "a:b%c,{}\"", stripeCustomerId: "cus_'{}" })
      const charge = yield* mustClaim(request)
      const outcome = new Rejected({ ...common(request.chargeKey), code: "x", detail: "it's \"bad\" \\ {,} \u{1F4B8} end" })
      yield* settle(charge, outcome)
      const record = yield* mustFind(request.chargeKey)
      assert.deepStrictEqual({ ...record.request }, { ...request })
      assert.strictEqual(record.outcome?._tag === "Rejected" ? record.outcome.detail : null, outcome.detail)
    }))

  it.effect("settles the others of a batch when one detail holds a NUL", () =>
    Effect.gen(function*() {
      const requests = Array.from({ length: 5 }, (_, index) => chargeFor(`nul-${index}`, period))
      const charges = yield* Effect.forEach(requests, (request) => mustClaim(request), { concurrency: "unbounded" })
      const answers = yield* Effect.forEach(charges, (charge, index) =>
        settle(charge, new Rejected({ ...common(charge.lease.chargeKey), code: "x", detail: index === 2 ? "a\0b" : "plain" })), { concurrency: "unbounded" })
      assert.deepStrictEqual(answers.map((answer) => answer._tag), Array.from({ length: 5 }, () => "Settled"))
    }))

  it.effect("reports counts and sums per state of a period", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const own = "2019-W07"
      const requests = Array.from({ length: 5 }, (_, index) => chargeFor(`report-${index}`, own, { amountMinor: 99_999_999 - index }))
      const charges = yield* Effect.forEach(requests, (request) => mustClaim(request))
      yield* settle(charges[0]!, succeeded(requests[0]!.chargeKey, "pi_r0", 99_999_999))
      yield* settle(charges[1]!, succeeded(requests[1]!.chargeKey, "pi_r1", 99_999_998))
      yield* settle(charges[2]!, declined(requests[2]!.chargeKey, null))
      yield* ledger.quarantine(charges[3]!.lease, "look")
      yield* mustClaim(chargeFor("report-0", "2019-W08"))
      const totals = (yield* ledger.report(own)).toSorted((a, b) => a.state.localeCompare(b.state))
      const base = { billingPeriod: own, currency: "usd" }
      assert.deepStrictEqual(totals.map((total) => ({ ...total })), [
        { ...base, state: "claimed", charges: 2, amountMinor: 199_999_991n, receivedMinor: 0n, quarantined: 1 },
        { ...base, state: "declined", charges: 1, amountMinor: 99_999_997n, receivedMinor: 0n, quarantined: 0 },
        { ...base, state: "succeeded", charges: 2, amountMinor: 199_999_997n, receivedMinor: 199_999_997n, quarantined: 0 }
      ])
      assert.isTrue((yield* ledger.report()).some((total) => total.billingPeriod === own))
    }))

  it.effect("finds nothing where nothing is", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const { chargeKey } = chargeFor("nobody", period)
      assert.isUndefined(yield* ledger.find(chargeKey))
      assert.deepStrictEqual(yield* ledger.events(chargeKey), [])
      assert.isFalse(yield* ledger.extend({ chargeKey, worker: "w", epoch: 1 }))
      const charge = { lease: { chargeKey, worker: "w", epoch: 1 }, attempt: 1, generation: 1 } as ClaimedCharge
      assert.deepStrictEqual(yield* settle(charge, rejected(chargeKey)), { _tag: "LeaseLost" })
      assert.deepStrictEqual(yield* attachTo(charge, "pi_nobody"), { _tag: "Lost", winnerId: null })
      assert.isFalse(yield* ledger.renew({ lease: charge.lease, generation: 1, paymentIntentId: "pi_nobody" }))
      yield* ledger.handBack(charge.lease, 0, "nothing to give back")
      yield* ledger.quarantine(charge.lease, "nothing to look at")
      yield* ledger.markReleased(chargeKey, 1)
      assert.strictEqual(yield* ledger.reopen({ chargeKeys: [chargeKey], from: ["declined"], actor: "ada", reason: "again" }), 0)
      assert.isUndefined(yield* ledger.find(chargeKey))
    }))
}
