/** Refunds under `purser pause stripe`: they wait, nothing fails, and each goes back once. The simulator's books are the judge. */
import { assert, describe, it } from "@effect/vitest"
import { ChargePause, type RefundLedger } from "@purser/core"
import { Refunds } from "@purser/engine"
import { PgChargePause } from "@purser/postgres"
import { StripeSim } from "@purser/stripe-sim"
import { chargeFor } from "@purser/testkit"
import { Effect, Fiber, Layer } from "effect"
import { databases } from "../src/Long.ts"
import { csv, type Desk, desk } from "../src/Desk.ts"
import { paidCharge, refundFor, refundsOf, refundWorld, stateOf } from "../src/RefundWorld.ts"
import { stores } from "../src/Store.ts"

const quickly = { PURSER_PAUSE_POLL: "50 millis" }
const act = { cause: "person", actor: "ops", reason: "an incident" } as const

for (const [name, database] of databases) {
  describe(`refunds while charging is paused, on ${name}`, () => {
    it.live("are stored and wait, those that are taken up again too, and are made once when it goes on", () =>
      Effect.gen(function*() {
        const request = chargeFor("acme", "2026-07")
        yield* paidCharge(request)
        const sim = yield* StripeSim
        const calls = Effect.map(sim.requests, (all) => all.filter(({ path }) => path.startsWith("/v1/refunds")).length)
        const waiting = Effect.gen(function*() {
          const pause = yield* ChargePause
          const refunds = yield* Refunds
          yield* pause.pause(act)
          const asked = refundFor(request, 400)
          const fiber = yield* Effect.forkChild(refunds.refund(asked))
          const stored: Effect.Effect<void, unknown, RefundLedger> = Effect.flatMap(stateOf(asked), (state) =>
            state === "requested" ? Effect.void : Effect.andThen(Effect.sleep(5), stored))
          yield* stored
          const swept = yield* Effect.forkChild(refunds.sweepOnce)
          // Time for a call that must not come; and the lease is longer than this.
          yield* Effect.sleep(300)
          assert.deepStrictEqual([yield* calls, yield* stateOf(asked), fiber.pollUnsafe(), swept.pollUnsafe()], [0, "requested", undefined, undefined])
          yield* pause.resume(act)
          assert.strictEqual((yield* Fiber.join(fiber))._tag, "Refunded")
          assert.strictEqual((yield* Fiber.join(swept)).unsettled, 0)
        })
        // The switch of the same database, which the world's own refunds were built without.
        yield* waiting.pipe(Effect.provide(Refunds.layer.pipe(Layer.provideMerge(PgChargePause.layer)), { local: true }))
        assert.deepStrictEqual(yield* refundsOf(request), { refunds: 1, refundedMinor: 400 })
      }).pipe(Effect.provide(refundWorld(database))), 120_000)
  })
}

describe("purser refund while charging is paused", () => {
  const paid = Effect.fnUntraced(function*(at: Desk) {
    const run = yield* at.purser(["run", at.write("bill.csv", csv("acme,2026-07,30.00,USD,cus_T001,pm_T001,base")), "--expected-total", "100.00", "--yes"])
    assert.strictEqual(run.code, 0, run.stderr)
    assert.strictEqual((yield* at.purser(["pause", "stripe", "--reason", "an incident", "--actor", "ops"])).code, 0)
  })
  const refund = ["refund", "acme", "2026-07", "--item", "base", "--reason", "wrong price", "--amount", "5.00", "--json"]
  const refunded = Effect.map(Effect.flatMap(StripeSim, (sim) => sim.books), (books) =>
    books.map(({ refundedMinor = 0, refunds = 0 }) => [refunds, refundedMinor]))

  for (const [name, store] of stores) {
    it.live(`waits for the end of the pause, or ends where nobody else could end it, on ${name}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const at = yield* desk(store)
        yield* paid(at)
        const calls = yield* at.calls
        const first = yield* at.start(refund, quickly)
        if (name === "pglite") {
          const ended = yield* first.ended
          assert.strictEqual(ended.code, 2, ended.stderr)
          assert.include(ended.stderr, "nothing was refunded")
        } else yield* first.says("waiting; `purser resume stripe` ends it")
        assert.deepStrictEqual([yield* at.calls, yield* refunded], [calls, [[0, 0]]])
        assert.strictEqual((yield* at.purser(["resume", "stripe"])).code, 0)
        const ended = name === "pglite" ? yield* at.purser(refund) : yield* first.ended
        assert.strictEqual(ended.code, 0, ended.stderr)
        assert.deepInclude(ended.json, { _tag: "Refunded", amountMinor: 500 })
        assert.deepStrictEqual(yield* refunded, [[1, 500]])
      })).pipe(Effect.provide(StripeSim.layer())), 240_000)
  }
})
