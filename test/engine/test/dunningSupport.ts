/** A bank, a processor with books, and dunning over them on virtual time. */
import { assert } from "@effect/vitest"
import { ChargeGateway, type ChargeKey, DunningBook, Ledger, SpendCap } from "@purser/core"
import { ChargePipeline, Dunning, DunningDesk, DunningHooks, DunningWorkflow, type GivenUp, PipelineOptions, retryPolicy } from "@purser/engine"
import { chargeFor, MockGateway } from "@purser/testkit"
import { Clock, ConfigProvider, Context, Effect, Latch, Layer, Option, Ref } from "effect"
import { TestClock } from "effect/testing"
import { WorkflowEngine } from "effect/workflow"

export const dayMs = 86_400_000
export const noFunds = "pm_card_visa_chargeDeclinedInsufficientFunds"
export const expired = "pm_card_chargeDeclinedExpiredCard"

/** Whether the cards of all customers have funds again, and what the final action was asked for. */
export class Bank extends Context.Service<Bank, {
  readonly funded: Ref.Ref<boolean>
  readonly givenUp: Ref.Ref<ReadonlyArray<GivenUp>>
  readonly hookFails: Ref.Ref<number>
  /** Confirms that are under way, and what holds them there. */
  readonly asked: { now: number }
  readonly answers: Latch.Latch
  /** How often what charges fails inside. */
  readonly defects: Ref.Ref<number>
  /** Objects are on their way, so that none can be canceled. */
  readonly underWay: Ref.Ref<boolean>
  /** Happens once, between the next look of a case and what follows from it. */
  readonly meanwhile: Ref.Ref<Effect.Effect<unknown>>
}>()("@purser/test-engine/Bank") {
  static readonly layer = Layer.effect(Bank, Effect.all({ funded: Ref.make(false), givenUp: Ref.make<ReadonlyArray<GivenUp>>([]), hookFails: Ref.make(0), asked: Effect.sync(() => ({ now: 0 })), answers: Latch.make(true), defects: Ref.make(0), underWay: Ref.make(false), meanwhile: Ref.make<Effect.Effect<unknown>>(Effect.void) }))
}

/** A turn of the real event loop: execution ids come from there. */
export const turn = Effect.callback<void>((resume) => {
  setImmediate(() => resume(Effect.void))
})

const gateway = Layer.effect(ChargeGateway, Effect.gen(function*() {
  const inner = yield* ChargeGateway
  const { answers, asked, defects, funded, underWay } = yield* Bank
  const counted = Effect.acquireRelease(
    Effect.sync(() => void (asked.now += 1)),
    () => Effect.sync(() => void (asked.now -= 1))
  )
  return ChargeGateway.of({
    ...inner,
    confirm: (order, input) =>
      Effect.andThen(counted, answers.await).pipe(
        Effect.andThen(Ref.getAndUpdate(defects, (left) => Math.max(0, left - 1))),
        Effect.tap((left) => left > 0 ? Effect.die(new Error("Bug: planted")) : Effect.void),
        Effect.andThen(Ref.get(funded)),
        Effect.flatMap((hasFunds) => inner.confirm(order, hasFunds ? { ...input, paymentMethod: "pm_card_visa" } : input)),
        Effect.scoped
      ),
    cancel: (order, id) =>
      Effect.flatMap(Ref.get(underWay), (isUnderWay) =>
        isUnderWay ? Effect.map(inner.retrieve(order, id), (payment) => ({ ...payment, status: "processing" as const })) : inner.cancel(order, id))
  })
}))

const hooks = Layer.effect(DunningHooks, Effect.gen(function*() {
  const { givenUp, hookFails } = yield* Bank
  return DunningHooks.of({
    givenUp: (ended) =>
      Effect.gen(function*() {
        yield* Ref.update(givenUp, (all) => [...all, ended])
        if ((yield* Ref.getAndUpdate(hookFails, (left) => left - 1)) > 0) return yield* Effect.fail({ message: "the other system is away" })
      })
  })
}))

const book = Layer.effect(DunningBook, Effect.gen(function*() {
  const inner = yield* DunningBook
  const { meanwhile } = yield* Bank
  let seen = ""
  return DunningBook.of({
    ...inner,
    look: (caseId, step) =>
      Effect.suspend(() => {
        const isSecond = seen === `${caseId} ${step}`
        seen = `${caseId} ${step}`
        return Effect.andThen(isSecond ? Effect.flatten(Ref.getAndSet(meanwhile, Effect.void)) : Effect.void, inner.look(caseId, step))
      })
  })
})).pipe(Layer.provide(DunningBook.layerMemory))

// Without a worker: its sweeps would be millions in thirty days.
export const world = ChargePipeline.layer.pipe(
  Layer.provideMerge(gateway),
  Layer.provideMerge(Layer.mergeAll(MockGateway.layer, book.pipe(Layer.provideMerge(Ledger.layerMemory)), SpendCap.layerMemory, hooks)),
  Layer.provideMerge(Bank.layer),
  Layer.provide(PipelineOptions.layer({ worker: "test", retry: retryPolicy({ attemptsMax: 6, backoffMs: 0, backoffMaxMs: 0 }), handBackMs: 0 }))
)
export const engine = DunningDesk.layer.pipe(Layer.merge(DunningWorkflow.layer), Layer.provideMerge(WorkflowEngine.layerMemory))
export const layer = (config: Record<string, string> = {}) =>
  engine.pipe(
    Layer.provideMerge(world),
    Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ PURSER_DUNNING: "on", PURSER_DUNNING_GRACE: "14 days", ...config })))
  )

export const until = <R>(isSo: Effect.Effect<boolean, unknown, R>): Effect.Effect<void, never, R> =>
  Effect.flatMap(Effect.orDie(isSo), (so) => so ? Effect.void : Effect.andThen(turn, until(isSo)))

/** The workflow of a case has nothing to do for now, or is over. */
const rests = Effect.fnUntraced(function*(caseId: string) {
  return Option.isSome(yield* Dunning.poll(yield* Dunning.executionId({ caseId })))
})
export const caseOf = (chargeKey: ChargeKey, number = 1) =>
  Effect.flatMap(DunningBook, (book) => Effect.map(book.casesOf(chargeKey), (all) => all.find((view) => view.case.number === number)!))

/** Declines a charge and follows it up. */
export const declined = Effect.fnUntraced(function*(paymentMethod: string, customer = "cust_1") {
  const request = chargeFor(customer, "2026-07", { paymentMethod })
  yield* (yield* SpendCap).open({ ...request, expectedMinor: 10_000n, headroomPercent: 110 })
  assert.strictEqual((yield* (yield* ChargePipeline).charge(request))._tag, "Declined")
  yield* tend
  return request
})
export const tend = Effect.gen(function*() {
  const book = yield* DunningBook
  const pass = yield* (yield* DunningDesk).tend
  yield* until(Effect.map(Effect.forEach(yield* book.running("", 100), rests), (all) => all.every((one) => one)))
  return pass
})

/** Lets time pass until the case does something by itself; answers the day on which it did. */
export const next = Effect.fnUntraced(function*(chargeKey: ChargeKey) {
  const before = yield* caseOf(chargeKey)
  yield* TestClock.adjust(before.case.goesOnAtMs! - (yield* Clock.currentTimeMillis))
  yield* until(Effect.gen(function*() {
    const now = yield* caseOf(chargeKey)
    return now.case.goesOnAtMs !== before.case.goesOnAtMs && (yield* rests(now.case.caseId))
  }))
  return (yield* Clock.currentTimeMillis) / dayMs
})
export const confirms = Effect.flatMap(MockGateway, (mock) => Effect.map(mock.calls, (calls) => calls.filter((call) => call === "confirm").length))
export const paid = MockGateway.payments("cust_1", "2026-07")
