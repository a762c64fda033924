/** What comes between a look of a dunning case and what follows from it: each act looks again before it asks or gives up. */
import { assert, describe, it } from "@effect/vitest"
import { ChargeGateway, DunningBook, Ledger } from "@purser/core"
import { retryCharge } from "@purser/engine"
import { MockGateway } from "@purser/testkit"
import { Effect, Ref } from "effect"
import { Bank, caseOf, confirms, dayMs, declined, expired, layer, next, noFunds, paid, until } from "./dunningSupport.ts"

/** Follows a declined charge up to the moment before its next act, in which `act` happens. */
const between = Effect.fnUntraced(function*<R>(card: string, act: (view: Effect.Success<ReturnType<typeof caseOf>>) => Effect.Effect<unknown, unknown, R>) {
  const { chargeKey } = yield* declined(card)
  const services = yield* Effect.context<R>()
  yield* Ref.set((yield* Bank).meanwhile, Effect.orDie(Effect.provideContext(act(yield* caseOf(chargeKey)), services)))
  yield* next(chargeKey)
  yield* until(Effect.map(caseOf(chargeKey), (view) => view.case.state !== "open"))
  return yield* caseOf(chargeKey)
})
const cancel = ({ case: { caseId } }: { readonly case: { readonly caseId: string } }) =>
  Effect.flatMap(DunningBook, (book) => book.close(caseId, "canceled", { actor: "ada", reason: "goodwill" }))
const newCard = ({ case: { stripeCustomerId } }: { readonly case: { readonly stripeCustomerId: string } }) =>
  Effect.flatMap(DunningBook, (book) => book.offer(stripeCustomerId, "pm_card_visa", { actor: "shop", reason: "new card" }))
/** What was done about giving up: calls that cancel an object, and hooks. */
const givenUp = Effect.gen(function*() {
  const calls = yield* (yield* MockGateway).calls
  return [calls.filter((call) => call === "cancel").length, (yield* Ref.get((yield* Bank).givenUp)).length]
})

describe("An attempt that is due", () => {
  it.effect("is not made for a case that was canceled in the same moment", () =>
    Effect.gen(function*() {
      const { funded } = yield* Bank
      const { case: ended, record } = yield* between(noFunds, (view) => Effect.andThen(Ref.set(funded, true), cancel(view)))
      assert.deepStrictEqual([ended.state, ended.closedAtMs, record.state, record.attempt], ["canceled", dayMs, "declined", 1])
      assert.deepStrictEqual([yield* confirms, yield* paid], [1, 0])
    }).pipe(Effect.provide(layer())))

  it.effect("is made with the card that was brought in the same moment, and not with the old one before it", () =>
    Effect.gen(function*() {
      const { case: ended, record } = yield* between(noFunds, newCard)
      assert.deepStrictEqual([ended.state, record.attempt, record.chosenMethod], ["paid", 2, "pm_card_visa"])
      assert.deepStrictEqual([yield* confirms, yield* paid], [2, 1])
    }).pipe(Effect.provide(layer())))
})

describe("A case whose time is over", () => {
  it.effect("is not given up when it was canceled in the same moment", () =>
    Effect.gen(function*() {
      const { case: ended } = yield* between(expired, cancel)
      assert.deepStrictEqual([ended.state, yield* givenUp, yield* confirms], ["canceled", [0, 0], 1])
    }).pipe(Effect.provide(layer())))

  it.effect("is not given up when a card was brought in the same moment", () =>
    Effect.gen(function*() {
      const { case: ended, record } = yield* between(expired, newCard)
      assert.deepStrictEqual([ended.state, record.attempt, yield* givenUp, yield* paid], ["paid", 2, [0, 0], 1])
    }).pipe(Effect.provide(layer())))

  it.effect("is not given up when a person was paid in the same moment", () =>
    Effect.gen(function*() {
      const { case: ended, record } = yield* between(expired, (view) => retryCharge(view.record, { actor: "ada", reason: "by phone", paymentMethod: "pm_card_visa" }))
      assert.deepStrictEqual([ended.state, record.state, yield* givenUp, yield* paid], ["paid", "succeeded", [0, 0], 1])
    }).pipe(Effect.provide(layer())))

  it.effect("ends as paid, and nobody hears that it is given up, when its object was paid at the processor in the same moment", () =>
    Effect.gen(function*() {
      const { case: ended, record } = yield* between(expired, ({ record: { attempt, chargeKey, generation, paymentIntentId, request } }) =>
        Effect.flatMap(ChargeGateway, (gateway) =>
          gateway.confirm({ attempt, chargeKey, generation, request }, { id: paymentIntentId!, attempt, paymentMethod: "pm_card_visa", keySuffix: "" })))
      assert.deepStrictEqual([ended.state, record.state, record.outcome?._tag], ["paid", "succeeded", "Succeeded"])
      assert.deepStrictEqual([yield* givenUp, yield* paid], [[1, 0], 1])
      assert.strictEqual((yield* (yield* Ledger).events(record.chargeKey)).at(-1)?.detail, "late success after declined")
    }).pipe(Effect.provide(layer())))

  it.effect("is not given up while its object is on its way", () =>
    Effect.gen(function*() {
      const { underWay } = yield* Bank
      const { chargeKey } = yield* declined(expired)
      yield* Ref.set(underWay, true)
      assert.strictEqual(yield* next(chargeKey), 14)
      assert.deepStrictEqual([(yield* caseOf(chargeKey)).case.state, yield* givenUp], ["open", [0, 0]])
      yield* Ref.set(underWay, false)
      assert.strictEqual(yield* next(chargeKey), 14 + 60_000 / dayMs)
      assert.deepStrictEqual([(yield* caseOf(chargeKey)).case.state, yield* givenUp], ["given_up", [1, 1]])
    }).pipe(Effect.provide(layer())))
})
