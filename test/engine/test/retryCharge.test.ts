/** A retry whose caller read the charge before others moved it: nobody is asked twice for one act, and no room stays taken for it. */
import { assert, describe, it } from "@effect/vitest"
import { type ChargeRecord, Declined, Ledger, LedgerError, LedgerUnavailable, RequiresAction, SpendCap } from "@purser/core"
import { ChargePipeline, PipelineOptions, retryCharge, retryPolicy } from "@purser/engine"
import { chargeFor, MockGateway } from "@purser/testkit"
import { Effect, Layer } from "effect"

const declining = chargeFor("cust_1", "2026-07", { paymentMethod: "pm_card_chargeDeclined" })
const { chargeKey } = declining
const act = { actor: "a person", reason: "again" }
const options = PipelineOptions.layer({ retry: retryPolicy({ attemptsMax: 4, backoffMs: 0, backoffMaxMs: 0 }) })
const stores = Layer.mergeAll(Ledger.layerMemory, SpendCap.layerMemory, MockGateway.layer)

const engine = (ledger: (ledger: Ledger["Service"]) => Ledger["Service"] = (one) => one) =>
  ChargePipeline.layer.pipe(
    Layer.provideMerge(Layer.effect(Ledger, Effect.map(Ledger, ledger))),
    Layer.provideMerge(Layer.mergeAll(stores, options))
  )

const mustFind = Effect.flatMap(Ledger, (ledger) => Effect.map(ledger.find(chargeKey), (found): ChargeRecord => found!))
const opened = Effect.flatMap(SpendCap, (cap) => cap.open({ ...declining, expectedMinor: BigInt(declining.amountMinor), headroomPercent: 100 }))
const room = Effect.flatMap(SpendCap, (cap) => Effect.map(cap.report(), (all) => all.map((one) => one.reservedMinor)))
const away = new LedgerError({ reason: new LedgerUnavailable({ operation: "test", detail: "away" }), chargeKey: null })

describe("a retry of what others have moved meanwhile", () => {
  it.effect("asks nobody again, and leaves no room taken, where their attempt was declined", () =>
    Effect.gen(function*() {
      yield* opened
      yield* (yield* ChargePipeline).charge(declining)
      const seen = yield* mustFind
      assert.strictEqual((yield* retryCharge(seen, act))?._tag, "Declined")
      assert.strictEqual(yield* retryCharge(seen, act), undefined)
      assert.deepStrictEqual([(yield* mustFind).attempt, yield* room], [2, [0n]])
      assert.strictEqual((yield* retryCharge(yield* mustFind, { ...act, paymentMethod: "pm_card_visa" }))?._tag, "Succeeded")
      assert.deepStrictEqual(yield* room, [BigInt(declining.amountMinor)])
    }).pipe(Effect.provide(engine())))

  it.effect("keeps the room of an attempt that is under way, and of one that was paid", () =>
    Effect.gen(function*() {
      yield* opened
      const pipeline = yield* ChargePipeline
      const ledger = yield* Ledger
      yield* pipeline.charge(declining)
      const seen = yield* mustFind
      yield* ledger.reopen({ chargeKeys: [chargeKey], from: ["declined"], attempt: 1, ...act, paymentMethod: "pm_card_visa" })
      assert.strictEqual(yield* retryCharge(seen, act), undefined)
      assert.deepStrictEqual(yield* room, [BigInt(declining.amountMinor)])
      assert.strictEqual((yield* pipeline.charge(declining))._tag, "Succeeded")
      assert.strictEqual(yield* retryCharge(seen, act), undefined)
      assert.deepStrictEqual(yield* room, [BigInt(declining.amountMinor)])
      assert.strictEqual(yield* MockGateway.payments("cust_1", "2026-07"), 1)
    }).pipe(Effect.provide(engine())))

  let isAway = 0
  it.effect("gives the room back though the store is away for a moment", () =>
    Effect.gen(function*() {
      yield* opened
      yield* (yield* ChargePipeline).charge(declining)
      const seen = yield* mustFind
      yield* retryCharge(seen, act)
      isAway = 2
      assert.strictEqual(yield* retryCharge(seen, act), undefined)
      assert.deepStrictEqual([isAway, yield* room], [0, [0n]])
    }).pipe(Effect.provide(engine((ledger) => ({
      ...ledger,
      find: (key) => Effect.suspend(() => isAway > 0 ? (isAway--, Effect.fail(away)) : ledger.find(key))
    })))))
  let beforeReopening: Effect.Effect<unknown> = Effect.void
  it.effect("holds its room against a release of the attempt before that comes late", () =>
    Effect.gen(function*() {
      yield* opened
      const cap = yield* SpendCap
      yield* (yield* ChargePipeline).charge(declining)
      let held: ReadonlyArray<bigint> = []
      beforeReopening = Effect.orDie(Effect.andThen(cap.release(chargeKey, 1), Effect.map(cap.report(), (all) => (held = all.map((one) => one.reservedMinor)))))
      assert.strictEqual((yield* retryCharge(yield* mustFind, { ...act, paymentMethod: "pm_card_visa" }))?._tag, "Succeeded")
      assert.deepStrictEqual(held, [BigInt(declining.amountMinor)])
    }).pipe(Effect.provide(engine((ledger) => ({ ...ledger, reopen: (input) => Effect.andThen(Effect.suspend(() => beforeReopening), ledger.reopen(input)) })))))

  it.effect("holds for what waits for its customer no other room than that of its own attempt, which may end unpaid first", () =>
    Effect.gen(function*() {
      yield* opened
      const ledger = yield* Ledger
      const cap = yield* SpendCap
      const claimed = yield* ledger.claim(declining, "one")
      assert(claimed._tag === "Claimed")
      const { attempt, generation, lease } = claimed.charge
      yield* cap.reserve({ ...declining, chargeKey, attempt })
      yield* ledger.attach({ lease, generation, paymentIntentId: "pi_1", paymentMethod: "pm_card_visa" })
      const common = { chargeKey, alreadySettled: false, declineCode: null, adviceCode: null, declinedChargeId: null, detail: "no" }
      yield* ledger.settle({ lease, attempt, paymentIntentId: "pi_1", outcome: new RequiresAction({ ...common, paymentIntentId: "pi_1" }) })
      const seen = yield* mustFind
      assert.strictEqual(yield* retryCharge(seen, act), undefined)
      assert.strictEqual((yield* mustFind).state, "processing")
      const [waiting] = yield* ledger.takeExpired("two", 1)
      yield* ledger.settle({ lease: waiting!.lease, attempt, paymentIntentId: "pi_1", outcome: new Declined({ ...common, paymentIntentId: "pi_1", code: "card_declined" }) })
      assert.strictEqual(yield* (yield* ChargePipeline).releaseDue(10), 1)
      assert.deepStrictEqual(yield* room, [0n])
    }).pipe(Effect.provide(engine((ledger) => ({
      ...ledger,
      // The customer has authenticated at this very moment.
      reopen: (input) => Effect.flatMap(ledger.takeWaiting(chargeKey, "hooks"), (taken) => Effect.andThen(ledger.handBack(taken!.lease, 0, "asked later"), ledger.reopen(input)))
    })))))
})
