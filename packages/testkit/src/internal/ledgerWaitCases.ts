/** Charges that wait outside, taken over when their object has moved on; and rows by their period. */
import { Canceled, type ChargeKey, Declined, Ledger, Processing, RequiresAction } from "@purser/core"
import { assert, type Vitest } from "@effect/vitest"
import { Effect } from "effect"
import { chargeFor } from "../chargeFor.ts"
import { StoreClock } from "../StoreClock.ts"
import {
  assertTrail, attachTo, claim, claimedAndAttached, common, declined, longMs, many, mustClaim, mustFind, period, rejected, settle, succeeded, sweep
} from "./ledgerSteps.ts"

const waits = (chargeKey: ChargeKey, paymentIntentId: string) =>
  new RequiresAction({ ...common(chargeKey), paymentIntentId, detail: "the customer must authenticate" })
const processing = (chargeKey: ChargeKey, paymentIntentId: string) => new Processing({ ...common(chargeKey), paymentIntentId })

const take = (chargeKey: ChargeKey, worker = "webhooks") =>
  Effect.flatMap(Ledger, (ledger) =>
    ledger.takeWaiting(chargeKey, worker).pipe(
      Effect.filterOrElse((taken) => taken !== undefined, () => Effect.die(new Error("nothing was taken")))
    ))

/** Adds the cases to a suite. */
export const waitCases = (it: Vitest.MethodsNonLive<Ledger | StoreClock>): void => {
  it.effect("takes over a processing charge before its time, and fences the earlier holder off", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const charge = yield* claimedAndAttached(chargeFor("wait-processing", period), "pi_wait_1")
      const { chargeKey } = charge.lease
      yield* settle(charge, processing(chargeKey, "pi_wait_1"), "pi_wait_1", longMs)
      const taken = yield* take(chargeKey)
      assert.deepStrictEqual(
        [taken.state, taken.paymentIntentId, taken.attempt, taken.resumed, taken.lease.epoch > charge.lease.epoch],
        ["processing", "pi_wait_1", 1, true, true]
      )
      assert.strictEqual((yield* settle(charge, declined(chargeKey, "pi_wait_1"), "pi_wait_1"))._tag, "Recorded")
      assert.strictEqual((yield* mustFind(chargeKey)).state, "processing")
      assert.strictEqual((yield* settle(taken, declined(chargeKey, "pi_wait_1"), "pi_wait_1"))._tag, "Settled")
      assert.strictEqual((yield* mustFind(chargeKey)).state, "declined")
      assert.isUndefined(yield* ledger.takeWaiting(chargeKey, "late"))
      yield* assertTrail(chargeKey)
    }))

  it.effect("a charge that waits for its customer ends as its object did", () =>
    Effect.gen(function*() {
      for (const [index, outcome] of ["succeeded", "declined", "requires_action"].entries()) {
        const id = `pi_wait_customer_${index}`
        const charge = yield* claimedAndAttached(chargeFor(`wait-customer-${outcome}`, period), id)
        const { chargeKey } = charge.lease
        yield* settle(charge, waits(chargeKey, id), id)
        const taken = yield* take(chargeKey)
        const meanwhile = yield* claim(taken.request)
        assert.strictEqual(meanwhile._tag === "AlreadySettled" ? meanwhile.outcome._tag : meanwhile._tag, "Processing")
        assert.deepStrictEqual({ ...(yield* mustFind(chargeKey)).outcome }, { ...processing(chargeKey, id), alreadySettled: true })
        const fact = outcome === "succeeded" ? succeeded(chargeKey, id) : outcome === "declined" ? declined(chargeKey, id) : waits(chargeKey, id)
        assert.strictEqual((yield* settle(taken, fact, id))._tag, "Settled")
        assert.strictEqual((yield* mustFind(chargeKey)).state, outcome)
        const events = yield* assertTrail(chargeKey)
        assert.include(events.map((event) => event.detail), "its object has moved on")
      }
    }))

  it.effect("of two that take at once the later one holds it", () =>
    Effect.gen(function*() {
      const charge = yield* claimedAndAttached(chargeFor("wait-two", period), "pi_wait_two")
      const { chargeKey } = charge.lease
      yield* settle(charge, waits(chargeKey, "pi_wait_two"), "pi_wait_two")
      const both = yield* Effect.all([take(chargeKey, "a"), take(chargeKey, "b")], { concurrency: 2 })
      const [first, last] = both.toSorted((a, b) => a.lease.epoch - b.lease.epoch)
      assert.notStrictEqual(first!.lease.epoch, last!.lease.epoch)
      assert.notStrictEqual((yield* settle(first!, declined(chargeKey, "pi_wait_two"), "pi_wait_two"))._tag, "Settled")
      assert.strictEqual((yield* settle(last!, succeeded(chargeKey, "pi_wait_two"), "pi_wait_two"))._tag, "Settled")
      yield* assertTrail(chargeKey)
    }))

  it.effect("takes nothing that is in work, final, quarantined or absent", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const open = yield* claimedAndAttached(chargeFor("wait-open", period), "pi_wait_open")
      const done = yield* claimedAndAttached(chargeFor("wait-done", period), "pi_wait_done")
      yield* settle(done, succeeded(done.lease.chargeKey, "pi_wait_done"), "pi_wait_done")
      const refused = yield* claimedAndAttached(chargeFor("wait-refused", period), "pi_wait_refused")
      yield* settle(refused, new Declined({ ...common(refused.lease.chargeKey), paymentIntentId: "pi_wait_refused", code: "card_declined", declineCode: null, detail: "" }), "pi_wait_refused")
      const held = yield* claimedAndAttached(chargeFor("wait-held", period), "pi_wait_held")
      yield* settle(held, processing(held.lease.chargeKey, "pi_wait_held"), "pi_wait_held", 0)
      yield* ledger.quarantine(held.lease, "a person looks")
      for (const { lease } of [open, done, refused, held]) {
        const before = yield* ledger.events(lease.chargeKey)
        assert.isUndefined(yield* ledger.takeWaiting(lease.chargeKey, "webhooks"))
        assert.deepStrictEqual(yield* ledger.events(lease.chargeKey), before)
      }
      assert.isUndefined(yield* ledger.takeWaiting(chargeFor("wait-absent", period).chargeKey, "webhooks"))
    }))

  it.effect("pages the rows of a period in the order in which they came", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const paged = "2019-03"
      const requests = Array.from({ length: 7 }, (_, index) => chargeFor(`page-${index}`, paged))
      // A store's clock may count in milliseconds, and rows of one moment have the order of their keys.
      const claimAlone = (request: typeof requests[number]) => Effect.andThen(claim(request), StoreClock.advance(1))
      yield* Effect.forEach([...requests, chargeFor("page-0", "2019-04")], claimAlone, { discard: true })
      const keys: Array<string> = []
      let after = ""
      for (;;) {
        const rows = yield* ledger.page(requests[0]!.billingPeriod, after, 3)
        keys.push(...rows.map((row) => row.chargeKey))
        assert.isAtMost(rows.length, 3)
        assert.isTrue(rows.every((row) => row.request.billingPeriod === requests[0]!.billingPeriod && row.state === "claimed"))
        if (rows.length < 3) break
        after = rows.at(-1)!.chargeKey
      }
      assert.deepStrictEqual(keys, requests.map((request) => request.chargeKey as string))
    }))

  const adopt = (request: ReturnType<typeof chargeFor>, paymentIntentId: string) =>
    Effect.flatMap(Ledger, (ledger) => ledger.adopt({ request, paymentIntentId, paymentMethod: "pm_used", worker: "reconcile" }))

  it.effect("adopts a paid object into a new row, which nobody charges whatever happens next", () =>
    Effect.gen(function*() {
      const request = chargeFor("adopt-new", period)
      const { chargeKey } = request
      const taken = yield* adopt(request, "pi_adopt_new")
      assert.deepStrictEqual(
        [taken?.state, taken?.paymentIntentId, taken?.attempt, taken?.resumed, taken?.request.customerId], ["processing", "pi_adopt_new", 1, true, "adopt-new"]
      )
      assert.deepStrictEqual({ ...(yield* mustFind(chargeKey)).outcome }, { ...processing(chargeKey, "pi_adopt_new"), alreadySettled: true })
      const again = yield* claim(request)
      assert.strictEqual(again._tag === "AlreadySettled" ? again.outcome._tag : again._tag, "Processing", "a request of it is answered, not charged")
      // The adopter dies: whoever takes over finds a charge that waits for its object.
      yield* StoreClock.advance(longMs)
      const [swept] = yield* sweep([chargeKey])
      assert.deepStrictEqual([swept?.state, swept?.paymentIntentId], ["processing", "pi_adopt_new"])
      assert.strictEqual((yield* settle(taken!, declined(chargeKey, "pi_adopt_new"), "pi_adopt_new"))._tag, "Recorded", "fenced off")
      assert.strictEqual((yield* settle(swept!, succeeded(chargeKey, "pi_adopt_new"), "pi_adopt_new"))._tag, "Settled")
      assert.include((yield* assertTrail(chargeKey)).map(({ detail }) => detail), "paid at the processor as pi_adopt_new")
    }))

  it.effect("adopts into rows without an object that nobody holds; a refused one moves to its next attempt", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const refused = yield* mustClaim(chargeFor("adopt-refused", period))
      yield* settle(refused, rejected(refused.lease.chargeKey))
      const again = yield* adopt(refused.request, "pi_adopt_refused")
      assert.deepStrictEqual([again?.state, again?.attempt], ["processing", 2])
      assert.isFalse((yield* ledger.releaseDue(many)).some(({ chargeKey }) => chargeKey === refused.lease.chargeKey), "its room is not given back any more")
      const left = yield* mustClaim(chargeFor("adopt-left", period))
      assert.isUndefined(yield* adopt(left.request, "pi_adopt_left"), "its worker holds it")
      yield* StoreClock.advance(longMs)
      const brief = yield* mustClaim(chargeFor("adopt-brief", period))
      yield* StoreClock.advance(brief.leaseLeftMs)
      assert.strictEqual((yield* adopt(brief.request, "pi_adopt_brief"))?.paymentIntentId, "pi_adopt_brief", "in the moment in which its lease ends")
      assert.strictEqual((yield* adopt(left.request, "pi_adopt_left"))?.paymentIntentId, "pi_adopt_left")
      assert.strictEqual((yield* attachTo(left, "pi_other"))._tag, "Lost")
      yield* assertTrail(left.lease.chargeKey)
      const ready = yield* mustClaim(chargeFor("adopt-ready", period))
      yield* settle(ready, declined(ready.lease.chargeKey, null))
      yield* ledger.reopen({ chargeKeys: [ready.lease.chargeKey], from: ["declined"], actor: "ada", reason: "again" })
      const planned = yield* adopt(ready.request, "pi_adopt_ready")
      assert.deepStrictEqual([planned?.attempt, planned?.paymentMethod, planned?.resumed], [2, "pm_used", true], "one that nobody has begun is at that attempt already")
      const bank = yield* mustClaim(chargeFor("adopt-bank", period))
      yield* settle(bank, declined(bank.lease.chargeKey, null))
      assert.strictEqual((yield* adopt(bank.request, "pi_adopt_bank"))?.attempt, 2)
    }))

  it.effect("adopts into nothing that names an object, has other terms, waits for a person or was canceled by one", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const attached = yield* claimedAndAttached(chargeFor("adopt-attached", period), "pi_adopt_own")
      yield* settle(attached, declined(attached.lease.chargeKey, "pi_adopt_own"), "pi_adopt_own")
      const other = yield* mustClaim(chargeFor("adopt-terms", period))
      yield* settle(other, rejected(other.lease.chargeKey))
      const held = yield* mustClaim(chargeFor("adopt-held", period))
      yield* settle(held, rejected(held.lease.chargeKey))
      yield* ledger.quarantine(held.lease, "a person looks")
      const ended = yield* mustClaim(chargeFor("adopt-ended", period))
      yield* settle(ended, new Canceled({ ...common(ended.lease.chargeKey), paymentIntentId: null, detail: "by hand" }))
      const otherTerms = [{ amountMinor: 999 }, { currency: "eur" }, { stripeCustomerId: "cus_other" }].map((terms) => [other, chargeFor("adopt-terms", period, terms)] as const)
      for (const [row, request] of [[attached, attached.request] as const, ...otherTerms, [held, held.request] as const, [ended, ended.request] as const]) {
        const before = yield* ledger.events(row.lease.chargeKey)
        assert.isUndefined(yield* adopt(request, "pi_adopt_none"))
        assert.deepStrictEqual(yield* ledger.events(row.lease.chargeKey), before)
      }
      assert.strictEqual((yield* adopt(other.request, "pi_adopt_terms"))?.paymentIntentId, "pi_adopt_terms", "nothing else stood in the way")
    }))

  it.effect("adopts a revision after the paid charge that it bills anew, and no second one", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const first = chargeFor("adopt-revised", period)
      const revision = chargeFor("adopt-revised", period, { revision: 1, amountMinor: 900 })
      assert.isUndefined(yield* adopt(revision, "pi_adopt_r1"), "what it bills anew is not there")
      const paid = yield* adopt(first, "pi_adopt_r0")
      assert.isUndefined(yield* adopt(revision, "pi_adopt_r1"), "what it bills anew is not paid yet")
      yield* settle(paid!, succeeded(first.chargeKey, "pi_adopt_r0"), "pi_adopt_r0")
      const taken = yield* adopt(revision, "pi_adopt_r1")
      assert.deepStrictEqual([taken?.request.revision, taken?.request.amountMinor, taken?.state], [1, 900, "processing"])
      assert.isTrue(yield* ledger.renew({ lease: taken!.lease, generation: 1, paymentIntentId: "pi_adopt_r1" }))
      yield* StoreClock.advance(longMs)
      const anew = yield* adopt(revision, "pi_adopt_r2")
      assert.deepStrictEqual([anew?.paymentIntentId, anew?.generation], ["pi_adopt_r2", 2], "its own row stands in nobody's way")
      yield* settle(anew!, succeeded(revision.chargeKey, "pi_adopt_r2"), "pi_adopt_r2")
      const row = yield* ledger.find(revision.chargeKey)
      assert.deepStrictEqual([row?.revises, row?.state, row?.request.revision], [first.chargeKey, "succeeded", 1])
      assert.isUndefined(yield* adopt(revision, "pi_adopt_again"))
      yield* assertTrail(revision.chargeKey)
    }))

  it.effect("tells the namespaces of a period, and when its newest event was written", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const other = chargeFor("namespaces", "2031-03", { namespace: "one@acct_1" })
      assert.deepStrictEqual(yield* ledger.namespaces(other.billingPeriod), [])
      yield* mustClaim(other)
      yield* mustClaim(chargeFor("namespaces-2", "2031-03", { namespace: "one@acct_1" }))
      yield* mustClaim(chargeFor("namespaces", "2031-03", { namespace: "two" }))
      yield* StoreClock.advance(1000)
      const last = yield* mustClaim(chargeFor("namespaces", "2031-04", { namespace: "three" }))
      assert.deepStrictEqual((yield* ledger.namespaces(other.billingPeriod)).toSorted(), ["one@acct_1", "two"])
      const events = yield* ledger.events(last.lease.chargeKey)
      assert.strictEqual(yield* ledger.newestEventMs, events.at(-1)!.atMs)
    }))

  it.effect("of many adoptions at once one is made", () =>
    Effect.gen(function*() {
      const request = chargeFor("adopt-many", period)
      const taken = yield* Effect.all(Array.from({ length: 8 }, (_, index) => adopt(request, `pi_adopt_many_${index}`)), { concurrency: "unbounded" })
      assert.strictEqual(taken.filter((charge) => charge !== undefined).length, 1)
      yield* assertTrail(request.chargeKey)
    }))
}
