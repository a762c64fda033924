import { assert, describe, it } from "@effect/vitest"
import { chargeKeyOf, Declined, Ledger } from "@purser/core"
import { ChargePipeline, type DeclineFacts, dunningConfig, dunningWaits, nextAttemptAfterMs } from "@purser/engine"
import { chargeFor, TestPipeline } from "@purser/testkit"
import { ConfigProvider, Effect, Schedule } from "effect"

const dayMs = 86_400_000
const declined = (declineCode: string, adviceCode: string | null = null) =>
  new Declined({
    chargeKey: chargeKeyOf({ namespace: "n", customerId: "c", billingPeriod: "2026-07" }), alreadySettled: false, paymentIntentId: "pi_1",
    code: "card_declined", declineCode, adviceCode, detail: "no"
  })
const waits = (policy: Parameters<typeof nextAttemptAfterMs>[0], outcome: Declined, attempts = 5) =>
  Effect.forEach(Array.from({ length: attempts }, (_, i) => i + 1), (attempt) => nextAttemptAfterMs(policy, attempt, outcome))

describe("DunningPolicy", () => {
  it.effect("waits one time after another for soft declines, then leaves it to people; never for hard ones", () =>
    Effect.gen(function*() {
      const policy = dunningWaits(["1 day", "3 days"])
      assert.deepStrictEqual(yield* waits(policy, declined("insufficient_funds"), 3), [dayMs, 3 * dayMs, null])
      assert.deepStrictEqual(yield* waits(policy, declined("expired_card"), 3), [null, null, null])
      assert.deepStrictEqual(yield* waits(policy, declined("insufficient_funds", "do_not_try_again"), 1), [null])
    }))

  it.effect("may be any schedule of what is known of the decline", () =>
    Effect.gen(function*() {
      const doubling = Schedule.exponential("1 hour").pipe(
        Schedule.setInputType<DeclineFacts>(),
        Schedule.while(({ input }) => Effect.succeed(input.remedy === "wait"))
      )
      assert.deepStrictEqual(yield* waits(doubling, declined("insufficient_funds"), 3), [1, 2, 4].map((hours) => hours * 3_600_000))
      assert.deepStrictEqual(yield* waits(doubling, declined("do_not_honor"), 1), [null])
    }))

  it.effect("has no more attempts where its schedule has ended, also where that would go on again", () =>
    Effect.gen(function*() {
      const gap = Schedule.spaced("1 hour").pipe(Schedule.setInputType<DeclineFacts>(), Schedule.while(({ attempt }) => Effect.succeed(attempt !== 2)))
      assert.deepStrictEqual(yield* waits(gap, declined("insufficient_funds"), 4), [3_600_000, null, null, null])
    }))

  const configured = (text: string) => dunningConfig.parse(ConfigProvider.fromUnknown({ PURSER_DUNNING_WAITS: text }))
  it.effect("is read from the configuration", () =>
    Effect.gen(function*() {
      const soft = declined("insufficient_funds")
      assert.deepStrictEqual(yield* waits(yield* dunningConfig.parse(ConfigProvider.fromUnknown({})), soft), [1, 3, 5, 7].map((days) => days * dayMs).concat([null as never]))
      assert.deepStrictEqual(yield* waits(yield* configured("2 hours, 1 day"), soft, 3), [7_200_000, dayMs, null])
      assert.deepStrictEqual(yield* waits(yield* configured("none"), soft, 1), [null])
      assert.deepStrictEqual(yield* waits(yield* configured(" none "), soft, 1), [null])
      assert.deepStrictEqual(yield* waits(yield* configured("1 second,90 days"), soft, 3), [1000, 90 * dayMs, null], "the shortest and the longest")
      for (const wrong of ["soon", "1 day,", "0 seconds", "999 millis", "1 day, 120 days", "7776000001 millis", "none,1 day"]) {
        const { message } = yield* Effect.flip(configured(wrong))
        assert.include(message, "expected durations by comma, each from 1 second to 90 days, or none", wrong)
        assert.include(message, "PURSER_DUNNING_WAITS", wrong)
      }
    }))

  it.effect("may wait for each decline by its code, its advice or what would help", () =>
    Effect.gen(function*() {
      const byCode = (text: string) =>
        dunningConfig.parse(ConfigProvider.fromUnknown({ PURSER_DUNNING_WAITS: "1 day", PURSER_DUNNING_WAITS_BY_CODE: text }))
      const policy = yield* byCode("insufficient_funds=3 days,9 days; do_not_honor = none; try_again_later=2 days; wait=5 days;")
      assert.deepStrictEqual(yield* waits(policy, declined("insufficient_funds"), 3), [3 * dayMs, 9 * dayMs, null])
      assert.deepStrictEqual(yield* waits(policy, declined("do_not_honor"), 1), [null])
      assert.deepStrictEqual(yield* waits(policy, declined("generic_decline", "try_again_later"), 1), [2 * dayMs])
      assert.deepStrictEqual(yield* waits(policy, declined("processing_error"), 1), [5 * dayMs])
      assert.deepStrictEqual(yield* waits(policy, declined("call_issuer"), 2), [dayMs, null])
      assert.deepStrictEqual(yield* waits(policy, declined("expired_card"), 1), [null])
      for (const wrong of ["insufficient_funds", "insufficient_funds=soon", "=1 day", "a b=1 day", "a=1 day;b=soon", "a=1 day;B=1 day", "a=", "a1=1 day"]) {
        const { message } = yield* Effect.flip(byCode(wrong))
        assert.include(message, "expected CODE=WAITS by semicolon, where WAITS are durations by comma, each from 1 second to 90 days, or none", wrong)
        assert.include(message, "PURSER_DUNNING_WAITS_BY_CODE", wrong)
      }
      const spaced = yield* byCode(" ;\n  insufficient_funds  =\n 3 days ,\n\t9 days ; ;")
      assert.deepStrictEqual(yield* waits(spaced, declined("insufficient_funds"), 3), [3 * dayMs, 9 * dayMs, null])
      const general = yield* byCode("card_declined=4 days; wait=5 days")
      assert.deepStrictEqual(yield* waits(general, declined("insufficient_funds", "try_again_later"), 1), [4 * dayMs], "the error code before what would help")
      const named = yield* byCode("wait=5 days;card_declined=4 days;try_again_later=3 days;insufficient_funds=2 days")
      assert.deepStrictEqual(yield* waits(named, declined("insufficient_funds", "try_again_later"), 1), [2 * dayMs], "the nearest name, not the first in the list")
      assert.deepStrictEqual(yield* waits(named, declined("generic_decline", "try_again_later"), 1), [3 * dayMs])
      assert.deepStrictEqual(yield* waits(named, declined("generic_decline"), 1), [4 * dayMs])
    }))

  it.effect("sets the next attempt when a decline is recorded", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const soft = chargeFor("soft", "2025-07", { paymentMethod: "pm_card_visa_chargeDeclinedInsufficientFunds" })
      const hard = chargeFor("hard", "2025-07", { paymentMethod: "pm_card_chargeDeclinedExpiredCard" })
      for (const request of [soft, hard]) assert.strictEqual((yield* (yield* ChargePipeline).charge(request))._tag, "Declined")
      assert.strictEqual((yield* ledger.find(soft.chargeKey))?.nextAttemptAtMs, dayMs)
      assert.isNull((yield* ledger.find(hard.chargeKey))?.nextAttemptAtMs ?? null)
    }).pipe(Effect.provide(TestPipeline.layer)))
})
