/** Refunds and billing anew from a plain program. */
import { assert, it } from "@effect/vitest"
import { Purser } from "@purser/purser"
import { StripeSim } from "@purser/stripe-sim"
import { Effect } from "effect"
import { temporaryFolder } from "../src/Store.ts"

it.live("Purser.make charges, refunds once per id, and bills anew", () =>
  Effect.scoped(Effect.gen(function*() {
    const sim = yield* StripeSim
    const folder = yield* temporaryFolder
    const purser = yield* Effect.acquireRelease(
      Effect.promise(() => Purser.make({ PURSER_STRIPE_URL: sim.url, PURSER_STRIPE_KEY: "rk_test_plain", PURSER_DATA_DIR: folder })),
      ({ close }) => Effect.promise(close)
    )
    const name = { customerId: "cust_1", billingPeriod: "2025-07" }
    const run = <A>(call: () => Promise<A>) => Effect.promise(call)
    yield* run(() => purser.openCap({ billingPeriod: "2025-07", currency: "usd", expectedMinor: 10_000 }))
    yield* run(() => purser.charge({ ...name, amountMinor: 3000, currency: "usd", stripeCustomerId: "cus_1" }))
    // A field that nobody knows is refused by name, before anything is stored: here, it would have been a second full refund.
    for (const wrong of [
      () => purser.refund({ ...name, amount: 1000, reason: "outage" } as Parameters<typeof purser.refund>[0]),
      () => purser.charge({ ...name, amountMinor: 1, currency: "usd", stripeCustomerId: "cus_1", amount: 1 } as Parameters<typeof purser.charge>[0]),
      () => purser.openCap({ billingPeriod: "2025-08", currency: "usd", expectedMinor: 1, amount: 1 } as Parameters<typeof purser.openCap>[0]),
      () => purser.rebill({ ...name, amountMinor: 1, reason: "x", amount: 1 } as Parameters<typeof purser.rebill>[0])
    ]) {
      const refused = yield* Effect.flip(Effect.tryPromise({ try: wrong as () => Promise<unknown>, catch: String }))
      assert.match(refused, /amount"?\]/)
    }
    const part = yield* run(() => purser.refund({ ...name, amountMinor: 1000, reason: "outage" }))
    assert.deepStrictEqual([part._tag, part.amountMinor, part.alreadySettled], ["Refunded", 1000, false])
    assert.isTrue((yield* run(() => purser.refund({ ...name, amountMinor: 1000, reason: "outage" }))).alreadySettled)
    const early = yield* run(() => purser.rebill({ ...name, amountMinor: 2800, reason: "right price" }))
    assert.deepStrictEqual(early, { _tag: "NotRefunded", receivedMinor: 3000, refundedMinor: 1000 })
    yield* run(() => purser.refund({ ...name, refundId: "rest", reason: "wrong price" }))
    const error = yield* Effect.flip(Effect.tryPromise({ try: () => purser.refund({ ...name, refundId: "more", reason: "x" }), catch: (cause) => cause as { _tag: string } }))
    assert.strictEqual(error._tag, "RefundError")
    for (const alreadySettled of [false, true]) {
      const billed = yield* run(() => purser.rebill({ ...name, amountMinor: 2800, reason: "right price" }))
      assert.strictEqual(billed._tag, "Billed")
      if (billed._tag === "Billed") {
        assert.deepStrictEqual([billed.revision, billed.outcome._tag, billed.outcome.alreadySettled], [1, "Succeeded", alreadySettled])
      }
    }
    const books = yield* sim.books
    assert.strictEqual(books.reduce((sum, entry) => sum + entry.payments, 0), 2)
    assert.strictEqual(books.reduce((sum, entry) => sum + entry.amountMinor - (entry.refundedMinor ?? 0), 0), 2800)
  })).pipe(Effect.provide(StripeSim.layer())), 120_000)
