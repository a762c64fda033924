/** A refund through every failure of its steps, counted in the simulator's books. */
import { assert, describe, it } from "@effect/vitest"
import { refundFaultPlaces, RefundLedger } from "@purser/core"
import { Refunds } from "@purser/engine"
import { StripeGateway } from "@purser/stripe"
import { type FaultAction, StripeSim } from "@purser/stripe-sim"
import { chargeFor } from "@purser/testkit"
import { Effect, Exit, Fiber } from "effect"
import { databases } from "../src/Long.ts"
import { elsewhere, paidCharge, refund, refundFor, refundsOf, refundWorld, stateOf, sweepRefunds } from "../src/RefundWorld.ts"
import { advance, Crash } from "../src/World.ts"

const period = "2026-07"
const onRefund = (action: FaultAction, times: number | "always" = 1) =>
  Effect.flatMap(StripeSim, (sim) => sim.faults.add({ match: { method: "POST", path: "/v1/refunds", times }, action }))

for (const [name, database] of databases) {
  describe(`refunds on ${name}`, () => {
    it.live("a process that dies at any step, taken up within the day or after it: one refund", () =>
      Effect.gen(function*() {
        const crash = yield* Crash
        for (const place of refundFaultPlaces) {
          for (const later of ["1 minute", "25 hours"] as const) {
            const request = chargeFor(`${place}-${later.replace(" ", "")}`, period)
            yield* paidCharge(request)
            const wish = refundFor(request, 400)
            yield* crash.at(place)
            assert.isTrue(Exit.isFailure(yield* Effect.exit(refund(wish))), place)
            const stored = yield* stateOf(wish)
            assert.strictEqual(stored, place === "refund-after-settle" ? "succeeded" : "requested", place)
            yield* advance(later)
            yield* sweepRefunds
            const again = yield* refund(wish)
            assert.deepStrictEqual([again._tag, again.alreadySettled], ["Refunded", true], place)
            assert.deepStrictEqual(yield* refundsOf(request), { refunds: 1, refundedMinor: 400 }, `${place}, ${later}`)
          }
        }
      }).pipe(Effect.provide(refundWorld(database))), 120_000)

    const unknown: ReadonlyArray<readonly [string, FaultAction]> = [
      ["the answer is lost", { kind: "reset", at: "after" }],
      ["the request is lost", { kind: "reset", at: "before" }],
      ["the answer is cut", { kind: "truncate" }],
      ["a 500 that did it", { kind: "serverError", effect: "done", stored: false }],
      ["a stored 500 that did it", { kind: "serverError", effect: "done", stored: true }],
      ["a 500 that did nothing", { kind: "serverError", effect: "none", stored: false }],
      ["a proxy's page", { kind: "badGateway", effect: "done" }],
      ["JSON that is no answer", { kind: "foreignJson", status: 403, effect: "done" }],
      ["a rate limit", { kind: "rateLimited" }],
      ["a key in use", { kind: "keyInUse" }]
    ]
    it.live("unknown answers are looked up, not repeated blindly: one refund, known at once", () =>
      Effect.gen(function*() {
        for (const [what, action] of unknown) {
          const request = chargeFor(what.replaceAll(" ", "-"), period)
          yield* paidCharge(request)
          yield* onRefund(action)
          assert.strictEqual((yield* refund(refundFor(request, 400)))._tag, "Refunded", what)
          assert.deepStrictEqual(yield* refundsOf(request), { refunds: 1, refundedMinor: 400 }, what)
        }
      }).pipe(Effect.provide(refundWorld(database))), 120_000)

    it.live("a stored 500 that did nothing, or does it later, is never got round by another key", () =>
      Effect.gen(function*() {
        for (const effect of ["none", "later"] as const) {
          const request = chargeFor(`stored-${effect}`, period)
          yield* paidCharge(request)
          yield* onRefund({ kind: "serverError", effect, stored: true, laterMs: 60_000 })
          const wish = refundFor(request, 400)
          const error = yield* Effect.flip(refund(wish))
          assert.strictEqual(error.outcome, "unknown")
          assert.strictEqual(yield* stateOf(wish), "requested")
          assert.deepStrictEqual(yield* refundsOf(request), { refunds: 0, refundedMinor: 0 })
          yield* advance("25 hours")
          assert.deepStrictEqual(yield* sweepRefunds, { taken: 1, settled: 1, unsettled: 0 })
          assert.deepStrictEqual(yield* refundsOf(request), { refunds: 1, refundedMinor: 400 }, effect)
        }
      }).pipe(Effect.provide(refundWorld(database))), 120_000)

    it.live("a process that stood still and wakes after another has taken over sends nothing, though Stripe knows no keys", () =>
      Effect.gen(function*() {
        yield* (yield* StripeSim).setIdempotency(false)
        const request = chargeFor("stalled", period)
        yield* paidCharge(request)
        const wish = refundFor(request, 400)
        const held = yield* (yield* Crash).holdAt("refund-before-call")
        const one = yield* Effect.forkChild(Effect.flip(refund(wish)))
        yield* held.arrived
        assert.strictEqual((yield* Effect.flip(elsewhere("other", refund(wish))))._tag, "RefundError")
        yield* advance("1 minute")
        assert.strictEqual((yield* elsewhere("other", refund(wish)))._tag, "Refunded")
        yield* held.go
        const error = yield* Fiber.join(one)
        assert.strictEqual(error._tag === "RefundError" ? error.reason._tag : error._tag, "RefundLeaseLost")
        assert.deepStrictEqual(yield* refundsOf(request), { refunds: 1, refundedMinor: 400 })
      }).pipe(Effect.provide(refundWorld(database))), 120_000)

    it.live("a request that arrives late, after another process has made the refund, makes no second one", () =>
      Effect.gen(function*() {
        const request = chargeFor("overtaken", period)
        yield* paidCharge(request)
        const wish = refundFor(request, 400)
        yield* onRefund({ kind: "delay", at: "before", delayMs: 600_000 })
        const sim = yield* StripeSim
        const one = yield* Effect.forkChild(Effect.exit(refund(wish)))
        yield* Effect.repeat(sim.requests, { until: (all) => all.some(({ path }) => path === "/v1/refunds") })
        yield* advance("1 minute")
        assert.strictEqual((yield* elsewhere("other", refund(wish)))._tag, "Refunded")
        yield* sim.faults.release
        yield* Fiber.join(one)
        assert.deepStrictEqual(yield* refundsOf(request), { refunds: 1, refundedMinor: 400 })
        assert.strictEqual(yield* stateOf(wish), "succeeded")
      }).pipe(Effect.provide(refundWorld(database))), 120_000)

    for (const gateway of ["layerChargesWith", "layerInvoicesWith"] as const) {
      it.live(`payments of another gateway are given back, too: ${gateway}`, () =>
        Effect.gen(function*() {
          const request = chargeFor(gateway, period)
          yield* paidCharge(request)
          assert.strictEqual((yield* refund(refundFor(request, 400)))._tag, "Refunded")
          assert.strictEqual((yield* refund(refundFor(request, null, "rest"))).amountMinor, 600)
          const books = (yield* (yield* StripeSim).books).filter(({ customer }) => customer === request.customerId)
          assert.deepStrictEqual(books.map(({ payments, refundedMinor, refunds }) => [payments, refunds, refundedMinor]), [[1, 2, 1000]])
        }).pipe(Effect.provide(refundWorld(database, gateway === "layerChargesWith" ? StripeGateway.layerChargesWith : StripeGateway.layerInvoicesWith()))), 120_000)
    }

    it.live("two processes at once never give back more than was paid", () =>
      Effect.gen(function*() {
        const request = chargeFor("both", period)
        yield* paidCharge(request)
        const wishes = Array.from({ length: 12 }, (_, i) => refundFor(request, 300, `part-${i}`))
        const exits = yield* Effect.forEach(wishes, (wish, i) => Effect.exit(elsewhere(`p${i % 2}`, refund(wish))), { concurrency: "unbounded" })
        assert.strictEqual(exits.filter(Exit.isSuccess).length, 3)
        assert.deepStrictEqual(yield* refundsOf(request), { refunds: 3, refundedMinor: 900 })
        const left = yield* Effect.flip(refund(refundFor(request, 101, "rest")))
        assert.strictEqual(left._tag === "RefundError" ? left.reason._tag : left._tag, "RefundTooLarge")
        assert.strictEqual((yield* refund(refundFor(request, null, "rest"))).amountMinor, 100)
      }).pipe(Effect.provide(refundWorld(database))), 120_000)

    it.live("refunds that settle later are followed, and a success that comes back is told", () =>
      Effect.gen(function*() {
        const waits = chargeFor("waits", period, { paymentMethod: "pm_card_pendingRefund" })
        const fails = chargeFor("fails", period, { paymentMethod: "pm_card_refundFail" })
        for (const request of [waits, fails]) yield* paidCharge(request)
        assert.strictEqual((yield* refund(refundFor(waits)))._tag, "RefundPending")
        assert.strictEqual((yield* refund(refundFor(fails)))._tag, "Refunded")
        yield* advance("2 hours")
        yield* sweepRefunds
        assert.strictEqual(yield* stateOf(refundFor(waits)), "succeeded")
        const refunds = yield* Refunds
        assert.strictEqual((yield* refunds.recheck(refundFor(fails).refundKey))?._tag, "RefundFailed")
        assert.strictEqual((yield* refunds.recheck(refundFor(waits).refundKey))?._tag, "Refunded")
        assert.strictEqual(yield* stateOf(refundFor(fails)), "failed")
        assert.deepStrictEqual(yield* refundsOf(fails), { refunds: 0, refundedMinor: 0 })
        assert.strictEqual((yield* refund(refundFor(fails, null, "2"))).amountMinor, 1000)
        assert.isTrue((yield* (yield* RefundLedger).events(refundFor(waits).refundKey)).length >= 3)
      }).pipe(Effect.provide(refundWorld(database))), 120_000)
  })
}
