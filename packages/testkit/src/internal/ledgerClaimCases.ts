/** Who gets a charge: claims, conflicts, take-over, fencing, attach. */
import { Ledger, Principal, Processing } from "@purser/core"
import { assert, type Vitest } from "@effect/vitest"
import { Effect } from "effect"
import { chargeFor } from "../chargeFor.ts"
import { StoreClock } from "../StoreClock.ts"
import { assertTrail, attachTo, claim, claimedAndAttached, common, longMs, mustClaim, mustFind, period, rejected, settle, succeeded, tags } from "./ledgerSteps.ts"

/** Adds the cases to a suite. */
export const claimCases = (it: Vitest.MethodsNonLive<Ledger | StoreClock>): void => {
  it.effect("claims a new charge freshly, with its terms and a full lease", () =>
    Effect.gen(function*() {
      const request = chargeFor("fresh", period, { item: "seat", paymentMethod: "pm_1" })
      const charge = yield* mustClaim(request)
      assert.deepStrictEqual({ ...charge.lease }, { chargeKey: request.chargeKey, worker: "w1", epoch: charge.lease.epoch })
      assert.deepStrictEqual(
        [charge.state, charge.resumed, charge.generation, charge.attempt, charge.paymentIntentId, charge.paymentMethod],
        ["claimed", false, 1, 1, null, "pm_1"]
      )
      assert.isAbove(charge.leaseLeftMs, 0)
      assert.strictEqual(charge.sinceFirstClaimMs, 0)
      const record = yield* mustFind(request.chargeKey)
      assert.deepStrictEqual({ ...record.request }, { ...request })
      assert.strictEqual(record.state, "claimed")
      assert.isNull(record.outcome)
      yield* assertTrail(request.chargeKey)
    }))

  it.effect("names an object in the act of the first claim, and in no later one", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const request = chargeFor("named", period)
      const named = (worker: string, id: string) => Effect.map(ledger.claim(request, worker, { object: { id, paymentMethod: "pm_card_visa" } }), (answer) =>
        answer._tag === "Claimed" ? answer.charge : assert.fail(answer._tag))
      const charge = yield* named("w1", "one:named")
      assert.deepStrictEqual([charge.state, charge.resumed, charge.paymentIntentId, charge.paymentMethod], ["attached", false, "one:named", "pm_card_visa"])
      assert.deepStrictEqual(yield* attachTo(charge, "pi_other"), { _tag: "Lost", winnerId: "one:named" })
      yield* StoreClock.advance(longMs)
      const second = yield* named("w2", "one:later")
      assert.deepStrictEqual([second.state, second.resumed, second.paymentIntentId], ["attached", true, "one:named"])
      assert.strictEqual((yield* settle(second, succeeded(request.chargeKey, "one:named"), "one:named"))._tag, "Settled")
      assert.deepStrictEqual((yield* assertTrail(request.chargeKey)).map(({ detail, to }) => [to, detail]).slice(-3), [
        ["attached", "one:named"], ["attached", "taken over"], ["succeeded", null]
      ])
    }))

  it.effect("names no object in the claim of a charge that was asked for before", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const request = chargeFor("named-again", period)
      yield* settle(yield* mustClaim(request), rejected(request.chargeKey))
      yield* ledger.reopen({ chargeKeys: [request.chargeKey], from: ["rejected"], actor: "ada", reason: "cap raised" })
      const answer = yield* ledger.claim(request, "w2", { object: { id: "one:again", paymentMethod: "pm_other" } })
      assert.deepStrictEqual(
        answer._tag === "Claimed" ? [answer.charge.state, answer.charge.paymentIntentId, answer.charge.paymentMethod] : answer._tag, ["claimed", null, "pm_card_visa"]
      )
    }))

  it.effect("keeps who asked on the trail, for each claim of a batch its own", () =>
    Effect.gen(function*() {
      const askers = ["alice", null, "bob"]
      const requests = askers.map((_, index) => chargeFor(`asked-${index}`, period))
      yield* Effect.forEach(requests, (request, index) => Effect.provideService(mustClaim(request), Principal, askers[index]!), { concurrency: "unbounded" })
      const trails = yield* Effect.forEach(requests, (request) => assertTrail(request.chargeKey))
      assert.deepStrictEqual(trails.map((trail) => trail.at(-1)!.principal), askers)
    }))

  it.effect("answers a claim of a held charge with the time that is left", () =>
    Effect.gen(function*() {
      const request = chargeFor("held", period)
      yield* StoreClock.advance(longMs)
      const charge = yield* mustClaim(request)
      const answer = yield* claim(request, "w2")
      assert.strictEqual(answer._tag, "InProgress")
      if (answer._tag === "InProgress") {
        assert.isAbove(answer.leaseLeftMs, 0)
        assert.isAtMost(answer.leaseLeftMs, charge.leaseLeftMs)
      }
    }))

  it.effect("gives one of many simultaneous claims the charge and the others its lease", () =>
    Effect.gen(function*() {
      const request = chargeFor("simultaneous", period)
      const answers = yield* Effect.all(Array.from({ length: 40 }, (_, index) => claim(request, `w${index}`)), { concurrency: "unbounded" })
      assert.deepStrictEqual(tags(answers), ["Claimed", ...Array.from({ length: 39 }, () => "InProgress")])
    }))

  it.effect("takes one of two simultaneous claims of different terms and calls the other a conflict", () =>
    Effect.gen(function*() {
      const answers = yield* Effect.all(
        [claim(chargeFor("terms-race", period, { amountMinor: 1000 })), claim(chargeFor("terms-race", period, { amountMinor: 2000 }))],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(tags(answers), ["Claimed", "Conflict"])
    }))

  it.effect("keeps hundreds of simultaneous claims of distinct charges apart", () =>
    Effect.gen(function*() {
      const requests = Array.from({ length: 700 }, (_, index) => chargeFor(`apart-${index}`, period, { amountMinor: 1000 + index }))
      const charges = yield* Effect.forEach(requests, (request) => mustClaim(request), { concurrency: "unbounded" })
      assert.deepStrictEqual(
        charges.map((charge) => [charge.lease.chargeKey, charge.request.amountMinor]),
        requests.map((request) => [request.chargeKey, request.amountMinor])
      )
      const attached = yield* Effect.forEach(charges, (charge, index) => attachTo(charge, `pi_apart_${index}`), { concurrency: "unbounded" })
      assert.isTrue(attached.every((answer) => answer._tag === "Attached"))
      const settled = yield* Effect.forEach(charges, (charge, index) =>
        settle(charge, succeeded(charge.lease.chargeKey, `pi_apart_${index}`, 1000 + index), `pi_apart_${index}`), { concurrency: "unbounded" })
      assert.isTrue(settled.every((answer) => answer._tag === "Settled"))
      for (const index of [0, 350, 699]) {
        const { outcome } = yield* mustFind(requests[index]!.chargeKey)
        assert.strictEqual(outcome?._tag === "Succeeded" ? outcome.amountReceivedMinor : null, 1000 + index)
      }
    }))

  for (
    const [what, terms] of [
      ["amount", { amountMinor: 1001 }],
      ["currency", { currency: "eur" }],
      ["Stripe customer", { stripeCustomerId: "cus_other" }],
      ["payment method", { paymentMethod: "pm_other" }],
      ["absence of a payment method", { paymentMethod: null }]
    ] as const
  ) {
    it.effect(`calls another ${what} a conflict, in work and settled, and says both sides`, () =>
      Effect.gen(function*() {
        const customer = `conflict ${what}`
        const base = { stripeCustomerId: "cus_base" }
        const request = chargeFor(customer, period, base)
        const other = chargeFor(customer, period, { ...base, ...terms })
        const charge = yield* mustClaim(request)
        const answer = yield* claim(other)
        assert.strictEqual(answer._tag, "Conflict")
        if (answer._tag === "Conflict") {
          assert.deepStrictEqual(answer.expected, {
            amountMinor: 1000, currency: "usd", stripeCustomerId: "cus_base", paymentMethod: "pm_card_visa"
          })
          assert.notDeepEqual(answer.actual, answer.expected)
        }
        yield* settle(charge, rejected(request.chargeKey))
        assert.strictEqual((yield* claim(other))._tag, "Conflict")
        assert.strictEqual((yield* claim(request))._tag, "AlreadySettled")
      }))
  }

  it.effect("lets another worker resume after the lease, with a new epoch and the first claim's time", () =>
    Effect.gen(function*() {
      const request = chargeFor("takeover", period)
      yield* StoreClock.advance(longMs)
      const first = yield* claimedAndAttached(request, "pi_takeover")
      yield* StoreClock.advance(longMs)
      const second = yield* mustClaim(request, "w2")
      assert.deepStrictEqual([second.resumed, second.state, second.paymentIntentId, second.paymentMethod], [true, "attached", "pi_takeover", "pm_card_visa"])
      assert.isAbove(second.lease.epoch, first.lease.epoch)
      assert.isAtLeast(second.sinceFirstClaimMs, longMs)
      assert.approximately(second.sinceFirstClaimMs, longMs, 60_000)
      assert.approximately(second.firstClaimedAtMs, first.firstClaimedAtMs, 1)
      yield* assertTrail(request.chargeKey)
    }))

  it.effect("lets nothing of an old epoch through", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const request = chargeFor("fenced", period)
      const old = yield* mustClaim(request)
      yield* StoreClock.advance(longMs)
      const now = yield* mustClaim(request, "w2")
      assert.deepStrictEqual(yield* attachTo(old, "pi_old"), { _tag: "Lost", winnerId: null })
      assert.isFalse(yield* ledger.extend(old.lease))
      yield* ledger.handBack(old.lease, 0, "too late")
      assert.strictEqual((yield* claim(request, "w3"))._tag, "InProgress")
      assert.deepStrictEqual(yield* settle(old, rejected(request.chargeKey)), { _tag: "LeaseLost" })
      assert.deepStrictEqual(yield* settle(old, succeeded(request.chargeKey, "pi_old"), "pi_old"), { _tag: "LeaseLost" })
      assert.deepStrictEqual(yield* attachTo(now, "pi_now"), { _tag: "Attached" })
      assert.isFalse(yield* ledger.renew({ lease: old.lease, generation: 1, paymentIntentId: "pi_now" }))
      const record = yield* mustFind(request.chargeKey)
      assert.deepStrictEqual([record.state, record.paymentIntentId], ["attached", "pi_now"])
    }))

  it.effect("ties one of two payment objects, and tells the loser which", () =>
    Effect.gen(function*() {
      const charge = yield* mustClaim(chargeFor("attach-race", period))
      const answers = yield* Effect.all([attachTo(charge, "pi_a"), attachTo(charge, "pi_b")], { concurrency: "unbounded" })
      const winner = (yield* mustFind(charge.lease.chargeKey)).paymentIntentId
      assert.include(["pi_a", "pi_b"], winner)
      assert.deepStrictEqual(
        answers,
        winner === "pi_a"
          ? [{ _tag: "Attached" }, { _tag: "Lost", winnerId: "pi_a" }]
          : [{ _tag: "Lost", winnerId: "pi_b" }, { _tag: "Attached" }]
      )
    }))

  it.effect("answers a repeated attach and a repeated settle as done", () =>
    Effect.gen(function*() {
      const request = chargeFor("repeated", period)
      const charge = yield* claimedAndAttached(request, "pi_repeated")
      assert.deepStrictEqual(yield* attachTo(charge, "pi_repeated"), { _tag: "Attached" })
      const paid = succeeded(request.chargeKey, "pi_repeated")
      const answers = yield* Effect.all([settle(charge, paid, "pi_repeated"), settle(charge, paid, "pi_repeated")], { concurrency: "unbounded" })
      assert.deepStrictEqual(answers.map((answer) => answer._tag).sort(), ["Recorded", "Settled"])
      const events = yield* assertTrail(request.chargeKey)
      assert.strictEqual(events.filter((event) => event.to === "succeeded").length, 1)
      assert.strictEqual(events.filter((event) => event.to === "attached").length, 1)
    }))

  it.effect("freezes a method with the same object again where there is none yet, once and for its holder only", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const request = chargeFor("freeze", period, { paymentMethod: null })
      const old = yield* mustClaim(request)
      yield* attachTo(old, "pi_freeze", null)
      yield* StoreClock.advance(longMs)
      const now = yield* mustClaim(request, "w2")
      assert.isNull(now.paymentMethod)
      for (const [holder, method] of [[old, "pm_old"], [now, null], [now, "pm_first"], [now, "pm_second"]] as const) {
        assert.deepStrictEqual(yield* attachTo(holder, "pi_freeze", method), { _tag: "Attached" })
      }
      yield* StoreClock.advance(longMs)
      const last = yield* mustClaim(request, "w3")
      assert.strictEqual(last.paymentMethod, "pm_first")
      assert.deepStrictEqual((yield* assertTrail(request.chargeKey)).map(({ detail, worker }) => [worker, detail]).slice(-4), [
        ["w1", "pi_freeze"], ["w2", "taken over"], ["w2", "pi_freeze"], ["w3", "taken over"]
      ])
      const waiting = yield* mustClaim(chargeFor("freeze-late", period, { paymentMethod: null }))
      yield* attachTo(waiting, "pi_freeze_late", null)
      yield* settle(waiting, new Processing({ ...common(waiting.lease.chargeKey), paymentIntentId: "pi_freeze_late" }), "pi_freeze_late", longMs)
      assert.deepStrictEqual(yield* attachTo(waiting, "pi_freeze_late", "pm_late"), { _tag: "Attached" })
      assert.isNull((yield* ledger.takeWaiting(waiting.lease.chargeKey, "w2"))?.paymentMethod, "with what it was asked for is over")
    }))

  it.effect("refuses an attach of another generation", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const charge = yield* mustClaim(chargeFor("generation", period))
      const answer = yield* ledger.attach({ lease: charge.lease, generation: 2, paymentIntentId: "pi_2", paymentMethod: null })
      assert.strictEqual(answer._tag, "Lost")
      assert.strictEqual((yield* mustFind(charge.lease.chargeKey)).state, "claimed")
      yield* attachTo(charge, "pi_1")
      assert.deepStrictEqual(yield* attachTo({ ...charge, generation: 2 }, "pi_1"), { _tag: "Lost", winnerId: "pi_1" }, "nor with the same object")
    }))
}
