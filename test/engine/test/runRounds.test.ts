/** What a round of a run leaves to the next one, and when the caps of its periods are closed. */
import { Ledger, SpendCap } from "@purser/core"
import { ChargePipeline, isNoRoom, RunDefinition, RunDefinitions, retryCharge, Runs } from "@purser/engine"
import { chargeFor, FaultPlan, TestPipeline } from "@purser/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Ref, Schema, Stream } from "effect"
import { paid, Params, payments, plain, report, requests, rowsOf, start, until, view, wish, world } from "../src/RunWorld.ts"

const expired = "pm_card_chargeDeclinedExpiredCard"
const caps = Effect.flatMap(SpendCap, (cap) => Effect.map(cap.report(), (all) => all.map(({ closed }) => closed)))

describe("stages after the charge", () => {
  it.live("see each row once that was sent, in the round that sent it: a canceled round's rest comes with the next", () =>
    Effect.gen(function*() {
      const seen = yield* Ref.make<ReadonlyArray<{ readonly round: number; readonly customer: string; readonly state: string; readonly key: string }>>([])
      const billed = RunDefinition.rows("plain", {
        params: Params,
        rows: ({ count, from }) => Stream.make(rowsOf(requests(count, from)))
      }).after("receipt", {
        run: (rows, { idempotencyKey, round }) =>
          Ref.update(seen, (all) => [...all, ...rows.map(({ request, state }) => ({ round, customer: request.customerId, state, key: idempotencyKey }))])
      })
      yield* Effect.gen(function*() {
        const runs = yield* Runs
        const all = requests(65)
        yield* FaultPlan.delayReply(1000, 4)
        yield* start(wish("billed", { count: 60, from: 0 }, { options: { ...wish("", {}).options, headroomPercent: 200 } }))
        yield* until(paid(all), (count) => count >= 25)
        yield* runs.cancel("billed", "ops", "a look")
        yield* until(view("billed"), (one) => one.run.state === "canceled")
        const sent = yield* paid(all)
        assert.isBelow(sent, 60)
        const first = yield* Ref.get(seen)
        assert.deepStrictEqual([first.length, new Set(first.map(({ state }) => state))], [sent, new Set(["succeeded"])])
        // With late rows behind them.
        yield* runs.extend({ run: "billed", params: { count: 65, from: 0 }, actor: "test" })
        assert.deepStrictEqual((yield* report("billed")).notes, [])
        assert.deepStrictEqual(new Set(yield* payments(all)), new Set([1]))
        const both = yield* Ref.get(seen)
        assert.deepStrictEqual([both.length, new Set(both.map(({ customer }) => customer)).size], [65, 65])
        assert.deepStrictEqual(new Set(both.filter(({ round }) => round === 2).map(({ state }) => state)), new Set(["succeeded"]))
        const rounds = both.reduce((keys, { key, round }) => keys.set(key, (keys.get(key) ?? new Set()).add(round)), new Map<string, Set<number>>())
        assert.isTrue([...rounds.values()].every(({ size }) => size === 1))
      }).pipe(Effect.provide(world(RunDefinitions.layer(billed))))
    }))
})

describe("rows that come late", () => {
  it.live("are refused with those that the run has with other terms: none is passed over without a word", () =>
    Effect.gen(function*() {
      const amounts = { before: 1000, now: 9900 }
      const priced = RunDefinition.rows("priced", {
        params: Schema.Struct({ at: Schema.Literals(["before", "now"]), count: Schema.Int }),
        rows: ({ at, count }) => Stream.make(rowsOf(requests(count).map((one) => chargeFor(one.customerId, "2026-07", { amountMinor: one.customerId === "c1" ? amounts[at] : 1000 }))))
      })
      yield* Effect.gen(function*() {
        const runs = yield* Runs
        const options = { ...wish("", {}).options, headroomPercent: 200 }
        yield* start(wish("w", { at: "before", count: 5 }, { definition: "priced", options }))
        yield* report("w")
        yield* runs.extend({ run: "w", params: { at: "now", count: 6 }, actor: "test" })
        const error = yield* Effect.flip(report("w"))
        assert.strictEqual(error._tag === "RunError" && error.reason._tag, "TermsChanged")
        assert.strictEqual(error.message, `of the rows for "w", 1 has other terms than the run has (the first at line 2): nothing was planned; what is to be charged besides needs another item, and money back is a refund`)
        const { counted, run } = yield* view("w")
        assert.deepStrictEqual([run.state, run.detail, counted.map(({ rows }) => rows)], ["failed", error.message, [5]])
        assert.deepStrictEqual(yield* payments(requests(6)), [1, 1, 1, 1, 1, 0])
        // As it was, with the late row.
        yield* runs.extend({ run: "w", params: { at: "before", count: 6 }, actor: "test" })
        assert.deepStrictEqual([(yield* report("w")).state, yield* payments(requests(6))], ["finished", [1, 1, 1, 1, 1, 1]])
      }).pipe(Effect.provide(world(RunDefinitions.layer(priced))))
    }))
})

describe("the caps of a run's periods", () => {
  const closing = Effect.gen(function*() {
    const poor = chargeFor("poor", "2026-07", { paymentMethod: expired })
    yield* (yield* SpendCap).open({ ...poor, expectedMinor: 100_000n, headroomPercent: 110 })
    assert.strictEqual((yield* (yield* ChargePipeline).charge(poor))._tag, "Declined")
    // A hard decline: no attempt is planned, and no case is opened yet.
    assert.isNull((yield* (yield* Ledger).find(poor.chargeKey))!.nextAttemptAtMs)
    yield* start(wish("closing", { count: 2, from: 0 }, { options: { ...wish("", {}).options, closePeriod: true } }))
    return (yield* report("closing")).notes
  })

  it.live("stay open for a hard decline for which dunning is about to open a case", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* closing, ["the cap of 2026-07 usd stays open: 1 declined charge is still asked for"])
      assert.deepStrictEqual(yield* caps, [false])
    }).pipe(Effect.provide(world(RunDefinitions.layer(plain), "1 day", undefined, { PURSER_DUNNING: "on" }))))

  it.live("are closed over it where nobody opens cases, and the run says so", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* closing, ["the cap of 2026-07 usd is closed over 1 declined charge: purser cap reopen opens it, if they are to be asked for again"])
      assert.deepStrictEqual(yield* caps, [true])
    }).pipe(Effect.provide(world(RunDefinitions.layer(plain)))))
})

describe("another attempt", () => {
  for (const how of ["closed", "full"] as const) {
    it.live(`is not begun while the cap is ${how}: the decline stands, and the same act goes through once there is room`, () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const ledger = yield* Ledger
        const poor = chargeFor("poor", "2026-07", { paymentMethod: expired })
        const other = chargeFor("other", "2026-07")
        yield* cap.open({ ...poor, expectedMinor: BigInt(poor.amountMinor), headroomPercent: 100 })
        assert.strictEqual((yield* (yield* ChargePipeline).charge(poor))._tag, "Declined")
        yield* (yield* ChargePipeline).releaseDue(100)
        yield* how === "closed" ? cap.close(poor) : cap.reserve({ ...other, chargeKey: other.chargeKey, attempt: 1 })
        const again = Effect.gen(function*() {
          const record = (yield* ledger.find(poor.chargeKey))!
          return yield* retryCharge(record, { actor: "ada", reason: "new card", paymentMethod: "pm_card_visa" })
        })
        const error = yield* Effect.flip(again)
        assert.deepStrictEqual([isNoRoom(error), error._tag === "SpendCapError" && error.reason._tag], [true, how === "closed" ? "CapClosed" : "CapExceeded"])
        const stands = (yield* ledger.find(poor.chargeKey))!
        assert.deepStrictEqual([stands.state, stands.attempt, stands.chosenMethod, yield* paid([poor])], ["declined", 1, null, 0])
        yield* how === "closed" ? cap.reopen({ ...poor, actor: "ada", reason: "new card" }) : cap.release(other.chargeKey, 1)
        assert.strictEqual((yield* again)?._tag, "Succeeded")
        assert.deepStrictEqual([yield* paid([poor]), (yield* cap.report())[0]!.reservedMinor], [1, BigInt(poor.amountMinor)])
      }).pipe(Effect.provide(TestPipeline.layerStrictCap)))
  }

  it.live("holds its room once, however many ask at the same moment", () =>
    Effect.gen(function*() {
      const cap = yield* SpendCap
      const poor = chargeFor("poor", "2026-07", { paymentMethod: expired })
      yield* cap.open({ ...poor, expectedMinor: BigInt(poor.amountMinor), headroomPercent: 100 })
      yield* (yield* ChargePipeline).charge(poor)
      const record = (yield* (yield* Ledger).find(poor.chargeKey))!
      const outcomes = yield* Effect.all(Array.from({ length: 6 }, () => retryCharge(record, { actor: "ada", reason: "new card", paymentMethod: "pm_card_visa" })), { concurrency: "unbounded" })
      assert.deepStrictEqual(outcomes.filter((one) => one !== undefined).map(({ _tag }) => _tag), ["Succeeded"])
      assert.deepStrictEqual([yield* paid([poor]), (yield* cap.report())[0]!.reservedMinor], [1, BigInt(poor.amountMinor)])
    }).pipe(Effect.provide(Layer.fresh(TestPipeline.layerStrictCap))))
})
