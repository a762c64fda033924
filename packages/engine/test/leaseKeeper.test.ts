/** One fiber holds the leases of all charges that wait: when it asks the ledger, for whom, and when no more. */
import { assert, describe, it } from "@effect/vitest"
import { ChargeRequest, type ClaimedCharge, Ledger, LedgerError, LedgerUnavailable } from "@purser/core"
import { Clock, Effect, Exit, Fiber, Layer, Logger, References, Scheduler, Schema, Scope } from "effect"
import { TestClock } from "effect/testing"
import { makeLeaseKeeper } from "../src/internal/leaseKeeper.ts"

const chargeOf = (customerId: string, leaseLeftMs: number): ClaimedCharge => {
  const request = Schema.decodeUnknownSync(ChargeRequest)({
    namespace: "zmq-billing", customerId, billingPeriod: "2026-07", amountMinor: 1999, currency: "usd", stripeCustomerId: "cus_1"
  })
  return {
    lease: { chargeKey: request.chargeKey, worker: customerId, epoch: 1 }, leaseLeftMs, request, state: "claimed", resumed: false, generation: 1, attempt: 1, paymentIntentId: null,
    paymentMethod: "pm_1", chosenMethod: null, declinedChargeId: null, sinceFirstClaimMs: 0, firstClaimedAtMs: 0
  }
}

const away = (chargeKey: ClaimedCharge["lease"]["chargeKey"]) => new LedgerError({ reason: new LedgerUnavailable({ operation: "extend", detail: "stopped" }), chargeKey })

/** A keeper whose ledger answers as it is told; what was asked, as "who at when". */
const keeper = (answer: (lease: ClaimedCharge["lease"], asked: ReadonlyArray<string>) => Effect.Effect<boolean, LedgerError> = () => Effect.succeed(true)) =>
  Effect.gen(function*() {
    const asked: Array<string> = []
    const clock = yield* Clock.Clock
    const memory = yield* Ledger.pipe(Effect.provide(Ledger.layerMemory))
    const { hold } = yield* makeLeaseKeeper(Ledger.of({
      ...memory,
      extend: (lease) => Effect.suspend(() => {
        asked.push(`${lease.worker} ${clock.currentTimeMillisUnsafe()}`)
        return answer(lease, asked)
      })
    }))
    const wait = (charge: ClaimedCharge, ms: number) => Effect.forkChild(hold(charge)(Effect.as(Effect.sleep(ms), charge.lease.worker)), { startImmediately: true })
    return { asked, hold, wait }
  })

/** Time passes step by step, as for a fiber that sleeps anew after each answer. */
const pass = (ms: number) => Effect.forEach(Array.from({ length: ms / 50 }), () => TestClock.adjust(50), { discard: true })

describe("a lease", () => {
  it.effect("is renewed at each third of what a claim has given, as long as its charge waits, and not after", () =>
    Effect.gen(function*() {
      const { asked, wait } = yield* keeper()
      const waiting = yield* wait(chargeOf("a", 3000), 3500)
      yield* pass(950)
      assert.deepStrictEqual(asked, [])
      yield* pass(9050)
      assert.strictEqual(yield* Fiber.join(waiting), "a")
      assert.deepStrictEqual(asked, ["a 1000", "a 2000", "a 3000"])
    }))

  it.effect("is not renewed more often than each 50 ms", () =>
    Effect.gen(function*() {
      const { asked, wait } = yield* keeper()
      yield* wait(chargeOf("a", 30), 120)
      yield* pass(500)
      assert.deepStrictEqual(asked, ["a 50", "a 100"])
    }))

  it.effect("is renewed in its own time beside longer and shorter ones, also where the shorter one comes later", () =>
    Effect.gen(function*() {
      const { asked, wait } = yield* keeper()
      yield* wait(chargeOf("long", 6000), 4500)
      yield* pass(500)
      yield* wait(chargeOf("short", 1500), 1200)
      yield* pass(1000)
      yield* wait(chargeOf("longer", 9000), 4500)
      yield* pass(10_000)
      assert.deepStrictEqual(asked, ["short 1000", "short 1500", "long 2000", "long 4000", "longer 4500"])
    }))

  it.effect("wakes the keeper only where it is due sooner than what it waits for", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      let looks = 0
      const counting: Clock.Clock = Object.assign(Object.create(clock), { currentTimeMillisUnsafe: () => (looks += 1, clock.currentTimeMillisUnsafe()) })
      const { wait } = yield* Effect.provideService(keeper(), Clock.Clock, counting)
      const looksOf = (charge: ClaimedCharge) => Effect.gen(function*() {
        const before = looks
        yield* wait(charge, 9000)
        for (let turn = 0; turn < 20; turn++) yield* Effect.yieldNow
        return looks - before
      })
      yield* looksOf(chargeOf("a", 3000))
      // One look is that of the charge itself, another one the keeper's.
      assert.deepStrictEqual([yield* looksOf(chargeOf("later", 6000)), yield* looksOf(chargeOf("equal", 3000)), yield* looksOf(chargeOf("sooner", 1500)), yield* looksOf(chargeOf("again", 6000))], [1, 1, 2, 1])
    }))

  it.effect("is renewed for charges that come after a time without any", () =>
    Effect.gen(function*() {
      const { asked, wait } = yield* keeper()
      yield* pass(1000)
      yield* wait(chargeOf("a", 300), 150)
      yield* pass(1000)
      yield* wait(chargeOf("b", 300), 150)
      yield* pass(1000)
      assert.deepStrictEqual(asked, ["a 1100", "b 2100"])
    }))

  it.effect("that was lost stays lost, and the others are held on", () =>
    Effect.gen(function*() {
      const { asked, wait } = yield* keeper(({ worker }) => Effect.succeed(worker !== "lost"))
      const [lost] = [yield* wait(chargeOf("lost", 3000), 3500), yield* wait(chargeOf("a", 3000), 3500)]
      yield* pass(5000)
      assert.strictEqual(yield* Fiber.join(lost), "lost", "its charge is told by the next step, not by the keeper")
      assert.deepStrictEqual(asked, ["lost 1000", "a 1000", "a 2000", "a 3000"])
    }))

  it.effect("is asked for again at the next turn when the store was away, which is noted", () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => void lines.push(`${logLevel} ${String(message)}`))
    return Effect.gen(function*() {
      const { asked, wait } = yield* keeper(({ chargeKey }, { length }) => length === 1 ? Effect.fail(away(chargeKey)) : Effect.succeed(true))
      yield* wait(chargeOf("a", 3000), 2500)
      yield* pass(5000)
      assert.deepStrictEqual(asked, ["a 1000", "a 2000"])
      assert.deepStrictEqual(lines, ["Debug the lease is not renewed: the ledger is unavailable for extend: stopped"])
    }).pipe(Effect.provide(Layer.mergeAll(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, "Debug"))))
  })

  it.effect("is due a third after the answer, and a slow answer holds up no other", () =>
    Effect.gen(function*() {
      const { asked, wait } = yield* keeper(({ worker }, seen) => worker === "slow" && seen.length < 3 ? Effect.as(Effect.sleep(500), true) : Effect.succeed(true))
      yield* wait(chargeOf("slow", 3000), 4000)
      yield* wait(chargeOf("quick", 3000), 2500)
      yield* pass(5000)
      assert.deepStrictEqual(asked, ["slow 1000", "quick 1000", "quick 2000", "slow 2500", "slow 3500"])
    }))

  it.effect("is let go however the wait ends, and whatever is held when the scope ends", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const { asked, hold, wait } = yield* Scope.provide(keeper(), scope)
      assert.strictEqual(yield* Effect.flip(hold(chargeOf("failed", 3000))(Effect.fail("refused"))), "refused")
      yield* Fiber.interrupt(yield* wait(chargeOf("stopped", 3000), 9000))
      yield* pass(2000)
      assert.deepStrictEqual(asked, [])
      yield* wait(chargeOf("a", 3000), 9000)
      yield* pass(1000)
      yield* Scope.close(scope, Exit.void)
      yield* pass(3000)
      assert.deepStrictEqual(asked, ["a 3000"])
    }))

  it.effect("is held by nobody whose wait is stopped between any two effects", () =>
    Effect.gen(function*() {
      const { asked, hold } = yield* keeper()
      for (let turns = 0; turns < 12; turns++) {
        const wait = Effect.provideService(hold(chargeOf(`after ${turns}`, 3000))(Effect.never), Scheduler.MaxOpsBeforeYield, 3)
        const waiting = yield* Effect.forkChild(wait, { startImmediately: true })
        for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
        yield* Fiber.interrupt(waiting)
      }
      yield* pass(2000)
      assert.deepStrictEqual(asked, [])
    }))
})
