/** Charges that wait outside, taken over when their object has moved on; and rows by their period. */
import { type ChargeKey, Declined, Ledger, Processing, RequiresAction } from "@purser/core"
import { assert, type Vitest } from "@effect/vitest"
import { Effect } from "effect"
import { chargeFor } from "../chargeFor.ts"
import type { StoreClock } from "../StoreClock.ts"
import { assertTrail, claim, claimedAndAttached, common, declined, longMs, mustFind, period, settle, succeeded } from "./ledgerSteps.ts"

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

  it.effect("pages the rows of a period in the order of their keys", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const paged = "2019-03"
      const requests = Array.from({ length: 7 }, (_, index) => chargeFor(`page-${index}`, paged))
      yield* Effect.forEach([...requests, chargeFor("page-0", "2019-04")], (request) => claim(request), { discard: true })
      const keys: Array<string> = []
      let after = ""
      for (;;) {
        const rows = yield* ledger.page(requests[0]!.billingPeriod, after, 3)
        keys.push(...rows.map((row) => row.chargeKey))
        assert.isTrue(rows.every((row) => row.request.billingPeriod === requests[0]!.billingPeriod && row.state === "claimed"))
        if (rows.length < 3) break
        after = rows.at(-1)!.chargeKey
      }
      assert.deepStrictEqual(keys, requests.map((request) => request.chargeKey as string).sort())
    }))
}
