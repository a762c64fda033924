/** Dunning on virtual time: a schedule of weeks runs in a moment, and the processor's books say who was charged. */
import { assert, describe, it } from "@effect/vitest"
import { DunningBook, SpendCap } from "@purser/core"
import { Dunning, DunningDesk, retryCharge } from "@purser/engine"
import { chargeFor, MockGateway } from "@purser/testkit"
import { ConfigProvider, Effect, Exit, Layer, Option, Ref, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Bank, caseOf, confirms, dayMs, declined, engine, expired, layer, next, noFunds, paid, tend, turn, until, world } from "./dunningSupport.ts"

describe("Dunning", () => {
  it.effect("asks on the days of the policy, and gives up after the last and a time of grace: thirty days in a moment", () =>
    Effect.gen(function*() {
      const { givenUp } = yield* Bank
      const { chargeKey } = yield* declined(noFunds)
      const days: Array<number> = []
      while ((yield* caseOf(chargeKey)).case.state === "open") days.push(yield* next(chargeKey))
      assert.deepStrictEqual(days, [1, 4, 9, 16, 30])
      const { case: ended, record } = yield* caseOf(chargeKey)
      assert.deepInclude(ended, { state: "given_up", goesOnAtMs: null, closedAtMs: 30 * dayMs })
      assert.deepInclude(record, { state: "declined", attempt: 5, nextAttemptAtMs: null })
      assert.deepStrictEqual([yield* confirms, yield* paid], [5, 0])
      assert.deepStrictEqual((yield* Ref.get(givenUp)).map((one) => [one.case.caseId, one.record.attempt]), [[ended.caseId, 5]])
      assert.include(yield* (yield* MockGateway).calls, "cancel")
      yield* TestClock.adjust("90 days")
      assert.deepStrictEqual(yield* tend, { opened: 0, passed: 0, started: 0, woken: 0 })
      assert.strictEqual(yield* confirms, 5)
    }).pipe(Effect.provide(layer())))

  for (const how of ["closed", "full"] as const) {
    it.effect(`lets the decline stand while the cap is ${how}, says so, and asks once there is room`, () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const { chargeKey, ...request } = yield* declined(noFunds)
        const other = chargeFor("cust_other", "2026-07", { paymentMethod: "pm_card_visa" })
        if (how === "closed") yield* cap.close(request)
        else yield* cap.reserve({ ...request, chargeKey: other.chargeKey, attempt: 1, amountMinor: 11_000 })
        yield* Ref.set((yield* Bank).funded, true)
        assert.strictEqual(yield* next(chargeKey), 1)
        const waiting = yield* caseOf(chargeKey)
        assert.deepInclude(waiting.record, { state: "declined", attempt: 1 })
        assert.deepInclude(waiting.case, { state: "open", goesOnAtMs: dayMs + 3_600_000 })
        assert.include(waiting.case.detail ?? "", "cap")
        // Again after an hour, two, four, eight: days without room are a handful of looks, and nobody is asked.
        for (let look = 0; look < 4; look++) yield* next(chargeKey)
        assert.deepStrictEqual([yield* confirms, yield* paid, (yield* caseOf(chargeKey)).case.state], [1, 0, "open"])
        // A new card finds no room either, and is kept.
        yield* (yield* DunningBook).offer(request.stripeCustomerId, "pm_card_visa", { actor: "ops", reason: "new card" })
        yield* tend
        for (let pass = 0; pass < 5; pass++) yield* tend
        assert.deepInclude((yield* caseOf(chargeKey)).record, { state: "declined", attempt: 1 })
        assert.deepStrictEqual([yield* confirms, yield* paid, (yield* caseOf(chargeKey)).case.state], [1, 0, "open"])
        yield* how === "closed" ? cap.reopen({ ...request, actor: "ops", reason: "late" }) : cap.release(other.chargeKey, 1)
        // Whoever makes room says so, or the card is offered once more: it is tried at once, and not after hours.
        const book = yield* DunningBook
        assert.strictEqual(how === "closed" ? yield* book.roomMade(request) : yield* book.offer(request.stripeCustomerId, "pm_card_visa", { actor: "ops", reason: "once more" }), 1)
        assert.strictEqual((yield* tend).woken, 1)
        yield* until(Effect.map(caseOf(chargeKey), (view) => view.case.state === "paid"))
        assert.deepInclude((yield* caseOf(chargeKey)).record, { state: "succeeded", attempt: 2 })
        assert.deepStrictEqual([yield* confirms, yield* paid], [2, 1])
      }).pipe(Effect.provide(layer())))
  }

  it.effect("with a new card that finds no room hears that others paid, or that it is canceled", () =>
    Effect.gen(function*() {
      const cap = yield* SpendCap
      const book = yield* DunningBook
      const follow = Effect.fnUntraced(function*(customer: string) {
        const request = yield* declined(expired, customer)
        yield* cap.close(request)
        yield* book.offer(request.stripeCustomerId, "pm_card_visa", { actor: "shop", reason: "new card" })
        yield* tend
        const view = yield* caseOf(request.chargeKey)
        assert.deepStrictEqual([view.case.state, view.record.attempt, view.case.detail === null], ["open", 1, false])
        yield* cap.reopen({ ...request, actor: "ops", reason: "for one" })
        return view
      })
      const paidByOthers = yield* follow("cust_1")
      yield* retryCharge(paidByOthers.record, { actor: "ada", reason: "by phone", paymentMethod: "pm_card_visa" })
      yield* tend
      assert.strictEqual((yield* caseOf(paidByOthers.record.chargeKey)).case.state, "paid")
      const canceled = yield* follow("cust_2")
      yield* book.close(canceled.case.caseId, "canceled", { actor: "ada", reason: "goodwill" })
      yield* tend
      const result = yield* Dunning.poll(yield* Dunning.executionId({ caseId: canceled.case.caseId }))
      assert.strictEqual(Option.isSome(result) ? result.value._tag : "none", "Complete")
      assert.deepStrictEqual([yield* confirms, yield* paid], [3, 1])
    }).pipe(Effect.provide(layer())))

  it.effect("tries the new card though a person has asked with the old one meanwhile, and was refused", () =>
    Effect.gen(function*() {
      const book = yield* DunningBook
      const { chargeKey, stripeCustomerId } = yield* declined(noFunds)
      yield* book.offer(stripeCustomerId, "pm_card_visa", { actor: "shop", reason: "new card" })
      yield* retryCharge((yield* caseOf(chargeKey)).record, { actor: "ada", reason: "impatience" })
      assert.deepInclude((yield* caseOf(chargeKey)).record, { state: "declined", attempt: 2 })
      yield* tend
      const { case: ended, record } = yield* caseOf(chargeKey)
      assert.strictEqual(ended.state, "paid")
      assert.deepInclude(record, { attempt: 3, chosenMethod: "pm_card_visa" })
      assert.deepStrictEqual([yield* confirms, yield* paid], [3, 1])
    }).pipe(Effect.provide(layer())))

  it.effect("stops on success", () =>
    Effect.gen(function*() {
      const { chargeKey } = yield* declined(noFunds)
      assert.strictEqual(yield* next(chargeKey), 1)
      yield* Ref.set((yield* Bank).funded, true)
      assert.strictEqual(yield* next(chargeKey), 4)
      assert.deepInclude((yield* caseOf(chargeKey)).case, { state: "paid", closedAtMs: 4 * dayMs })
      yield* TestClock.adjust("90 days")
      assert.deepStrictEqual([yield* confirms, yield* paid], [3, 1])
    }).pipe(Effect.provide(layer())))

  it.effect("asks no hard decline again, waits for a new card, and tries that at once", () =>
    Effect.gen(function*() {
      const book = yield* DunningBook
      const { chargeKey, stripeCustomerId } = yield* declined(expired)
      yield* TestClock.adjust("2 days")
      assert.strictEqual(yield* confirms, 1)
      assert.strictEqual(yield* book.offer(stripeCustomerId, "pm_card_visa", { actor: "shop", reason: "new card" }), 1)
      assert.strictEqual((yield* tend).woken, 1)
      const { case: ended, record } = yield* caseOf(chargeKey)
      assert.deepInclude(ended, { state: "paid", closedAtMs: 2 * dayMs })
      assert.deepInclude(record, { attempt: 2, chosenMethod: "pm_card_visa" })
      assert.strictEqual(yield* paid, 1)
    }).pipe(Effect.provide(layer())))

  it.effect("ends with a new card that is refused too; another case follows that up", () =>
    Effect.gen(function*() {
      const book = yield* DunningBook
      const { chargeKey, stripeCustomerId } = yield* declined(expired)
      yield* book.offer(stripeCustomerId, noFunds, { actor: "shop", reason: "new card" })
      yield* tend
      assert.strictEqual((yield* caseOf(chargeKey)).case.state, "new_method")
      assert.deepInclude(yield* tend, { opened: 1, started: 1 })
      assert.deepInclude((yield* caseOf(chargeKey, 2)).case, { state: "open", openedAttempt: 2, goesOnAtMs: 3 * dayMs })
      assert.deepStrictEqual([yield* confirms, yield* paid], [2, 0])
    }).pipe(Effect.provide(layer())))

  it.effect("stops on cancellation, and asks no more", () =>
    Effect.gen(function*() {
      const book = yield* DunningBook
      const { chargeKey } = yield* declined(noFunds)
      yield* next(chargeKey)
      const { case: { caseId } } = yield* caseOf(chargeKey)
      yield* book.close(caseId, "canceled", { actor: "ada", reason: "goodwill" })
      assert.strictEqual((yield* tend).woken, 1)
      const result = yield* Dunning.poll(yield* Dunning.executionId({ caseId }))
      assert.strictEqual(Option.isSome(result) ? result.value._tag : "none", "Complete")
      yield* Ref.set((yield* Bank).funded, true)
      yield* TestClock.adjust("90 days")
      assert.deepStrictEqual([yield* confirms, yield* paid], [2, 0])
      assert.deepStrictEqual(yield* Ref.get((yield* Bank).givenUp), [])
    }).pipe(Effect.provide(layer())))

  it.effect("sees at once that a person has asked and was paid", () =>
    Effect.gen(function*() {
      const { chargeKey } = yield* declined(noFunds)
      const { record } = yield* caseOf(chargeKey)
      yield* retryCharge(record, { actor: "ada", reason: "by phone", paymentMethod: "pm_card_visa" })
      assert.strictEqual((yield* tend).woken, 1)
      assert.strictEqual((yield* caseOf(chargeKey)).case.state, "paid")
      yield* TestClock.adjust("90 days")
      assert.deepStrictEqual([yield* confirms, yield* paid], [2, 1])
    }).pipe(Effect.provide(layer())))

  it.effect("takes a person's refused attempt for one of its own, and waits anew", () =>
    Effect.gen(function*() {
      const { chargeKey } = yield* declined(noFunds)
      yield* TestClock.adjust("23 hours")
      yield* retryCharge((yield* caseOf(chargeKey)).record, { actor: "ada", reason: "impatience" })
      yield* tend
      assert.strictEqual((yield* caseOf(chargeKey)).case.goesOnAtMs, 23 * 3_600_000 + 3 * dayMs)
      yield* TestClock.adjust("1 hour")
      yield* turn
      assert.strictEqual(yield* confirms, 2)
    }).pipe(Effect.provide(layer())))

  it.effect("goes on with the attempt whose answers were lost, under its own number", () =>
    Effect.gen(function*() {
      const { chargeKey } = yield* declined(noFunds)
      yield* Ref.set((yield* Bank).funded, true)
      yield* MockGateway.fail({ step: "confirm", when: "before" }, 6)
      assert.strictEqual(yield* next(chargeKey), 1)
      assert.deepInclude((yield* caseOf(chargeKey)).record, { state: "attached", attempt: 2 })
      assert.strictEqual(yield* next(chargeKey), 1 + 60_000 / dayMs)
      assert.deepInclude((yield* caseOf(chargeKey)).record, { state: "succeeded", attempt: 2 })
      assert.strictEqual(yield* paid, 1)
    }).pipe(Effect.provide(layer())))

  it.effect("is not ended by a defect of what it calls", () =>
    Effect.gen(function*() {
      const bank = yield* Bank
      const { chargeKey } = yield* declined(noFunds)
      yield* Ref.set(bank.funded, true)
      yield* Ref.set(bank.defects, 1)
      assert.strictEqual(yield* next(chargeKey), 1)
      assert.strictEqual((yield* caseOf(chargeKey)).case.state, "open")
      assert.strictEqual(yield* next(chargeKey), 1 + 60_000 / dayMs)
      assert.deepInclude((yield* caseOf(chargeKey)).record, { state: "succeeded", attempt: 2 })
      assert.strictEqual(yield* paid, 1)
    }).pipe(Effect.provide(layer())))

  it.effect("goes on in another process, also where the engine has forgotten everything", () =>
    Effect.gen(function*() {
      const start = Effect.fnUntraced(function*() {
        const scope = yield* Scope.make()
        return { scope, context: yield* Layer.buildWithScope(engine, scope) }
      })
      const first = yield* start()
      const { chargeKey } = yield* declined(noFunds).pipe(Effect.provide(first.context))
      yield* TestClock.adjust("12 hours")
      yield* Scope.close(first.scope, Exit.void)
      yield* TestClock.adjust("6 hours")
      const second = yield* start()
      yield* Effect.gen(function*() {
        assert.strictEqual(yield* (yield* DunningDesk).restart, 1)
        yield* tend
        assert.strictEqual(yield* next(chargeKey), 1)
        yield* Ref.set((yield* Bank).funded, true)
        assert.strictEqual(yield* next(chargeKey), 4)
      }).pipe(Effect.provide(second.context))
      assert.strictEqual((yield* caseOf(chargeKey)).case.state, "paid")
      assert.deepStrictEqual([yield* confirms, yield* paid], [3, 1])
      yield* Scope.close(second.scope, Exit.void)
    }).pipe(Effect.provide(world.pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({})))), { local: true }), Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ PURSER_DUNNING: "on" })))))

  it.effect("does the final action again until it is done, and is open until then", () =>
    Effect.gen(function*() {
      const bank = yield* Bank
      yield* Ref.set(bank.hookFails, 2)
      const { chargeKey } = yield* declined(expired)
      const minutes: Array<number> = []
      while ((yield* caseOf(chargeKey)).case.state === "open") minutes.push(Math.round(((yield* next(chargeKey)) - 14) * 1440))
      assert.deepStrictEqual(minutes, [0, 1, 3])
      assert.strictEqual((yield* caseOf(chargeKey)).case.state, "given_up")
      assert.strictEqual(new Set((yield* Ref.get(bank.givenUp)).map((one) => one.case.caseId)).size, 1)
    }).pipe(Effect.provide(layer())))

  it.effect("asks for a few at a time, however many are due in one night", () =>
    Effect.gen(function*() {
      const { answers, asked, funded } = yield* Bank
      const keys = yield* Effect.forEach(Array.from({ length: 9 }, (_, index) => `cust_${index}`), (customer) => Effect.map(declined(noFunds, customer), ({ chargeKey }) => chargeKey))
      yield* Ref.set(funded, true)
      yield* answers.close
      yield* TestClock.adjust("1 day")
      yield* until(Effect.sync(() => asked.now === 3))
      yield* Effect.repeat(turn, { times: 100 })
      assert.strictEqual(asked.now, 3)
      yield* answers.open
      yield* until(Effect.map(Effect.forEach(keys, (key) => caseOf(key)), (views) => views.every((view) => view.case.state === "paid")))
      assert.strictEqual(yield* confirms, 18)
    }).pipe(Effect.provide(layer({ PURSER_DUNNING_CONCURRENCY: "3" }))))

  it.effect("opens no case by itself unless that is wished for", () =>
    Effect.gen(function*() {
      const { chargeKey } = yield* declined(noFunds)
      assert.deepStrictEqual(yield* (yield* DunningBook).casesOf(chargeKey), [])
      assert.deepInclude(yield* (yield* DunningBook).open(chargeKey, { actor: "ada", reason: "this one" }), { _tag: "Opened" })
      assert.deepInclude(yield* tend, { opened: 0, started: 1 })
      assert.strictEqual(yield* next(chargeKey), 1)
    }).pipe(Effect.provide(layer({ PURSER_DUNNING: "off" }))))
})
