/** A run that a command has in hand does what people say in the register, and tells there how it ended. */
import { type ChargeRequest, RunLedger, RunRegistry } from "@purser/core"
import { actsOn, BillingRun, CommandRun, type CommandRunNews, RunDefinitions, Runs } from "@purser/engine"
import { FaultPlan } from "@purser/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Data, Effect, Fiber, Layer, Ref, Stream } from "effect"
import { paid, payments, plain, requests, rowsOf, until, view, world } from "../src/RunWorld.ts"

const here = CommandRun.layer.pipe(Layer.provideMerge(world(RunDefinitions.layer(plain))))

class Refused extends Data.TaggedError("Refused") {}

const planned = (runId: string, charges: ReadonlyArray<ChargeRequest>) =>
  Effect.flatMap(BillingRun, (runs) => runs.plan({
    runId, source: runId, rows: Stream.make(rowsOf(charges)),
    decide: ({ totals }) => Effect.succeed(totals.map(({ total }) => ({ scope: total, expected: { expectedMinor: total.amountMinor, headroomPercent: 110 } })))
  }))

/** What `purser run` does once the file is planned. */
const command = Effect.fnUntraced(function*(runId: string, news: Ref.Ref<ReadonlyArray<CommandRunNews>>) {
  const hand = yield* CommandRun
  const work = hand.dispatch({ runId, concurrency: 4 }, (one) => Ref.update(news, (all) => [...all, one]))
  return yield* hand.registered({ runId, source: "/in/july.csv", actor: "ada", worker: "w1" }, work, () => false)
})
const begun = Effect.fnUntraced(function*(runId: string, charges: ReadonlyArray<ChargeRequest>) {
  yield* planned(runId, charges)
  const news = yield* Ref.make<ReadonlyArray<CommandRunNews>>([])
  return { news: Ref.get(news), fiber: yield* Effect.forkScoped(command(runId, news)) }
})
const acts = (runId: string) => Effect.map(Effect.flatMap(RunRegistry, ({ events }) => events(runId)), (events) => events.map(({ act, actor }) => [act, actor]))

describe("a run in a command's hands", () => {
  it.live("is held from outside, goes on, and finishes with one payment a row", () =>
    Effect.gen(function*() {
      const runs = yield* Runs
      const all = requests(40)
      yield* FaultPlan.delayReply(1000, 4)
      const { fiber, news } = yield* begun("held", all)
      yield* until(paid(all), (count) => count >= 5)
      assert.deepStrictEqual(actsOn((yield* view("held")).run), ["pause", "cancel"])
      assert.strictEqual((yield* runs.pause("held", "bob", "a look")).state, "paused")
      yield* until(news, (told) => told.includes("held"))
      const sent = yield* paid(all)
      assert.isBelow(sent, 40)
      yield* Effect.sleep("60 millis")
      assert.strictEqual(yield* paid(all), sent)
      assert.deepStrictEqual(actsOn((yield* view("held")).run), ["resume", "cancel"])
      yield* runs.resume("held", "bob")
      const end = yield* Fiber.join(fiber)
      assert.deepStrictEqual([end.canceled, end.summary.map(({ rows, state }) => [state, rows])], [null, [["succeeded", 40]]])
      assert.deepStrictEqual(yield* news, ["held", "goes on"])
      assert.deepStrictEqual(new Set(yield* payments(all)), new Set([1]))
      assert.deepStrictEqual(yield* acts("held"), [["running", "ada"], ["paused", "bob"], ["running", "bob"], ["finished", "ada"]])
      assert.deepStrictEqual((yield* view("held")).run.runner, "w1")
    }).pipe(Effect.scoped, Effect.provide(here)))

  it.live("is canceled from outside: what was sent is settled, the rest is not started", () =>
    Effect.gen(function*() {
      const runs = yield* Runs
      const all = requests(40)
      yield* FaultPlan.delayReply(1000, 4)
      const { fiber, news } = yield* begun("dropped", all)
      yield* until(paid(all), (count) => count >= 5)
      yield* runs.cancel("dropped", "bob", "wrong month")
      const end = yield* Fiber.join(fiber)
      const sent = yield* paid(all)
      assert.isBelow(sent, 40)
      assert.deepStrictEqual([end.canceled, yield* news], ["wrong month", ["canceled"]])
      assert.deepStrictEqual(Object.fromEntries(end.summary.map(({ rows, state }) => [state, rows])), { planned: 40 - sent, succeeded: sent })
      const { counted, run } = yield* view("dropped")
      assert.deepStrictEqual([run.state, run.detail, actsOn(run)], ["canceled", "wrong month", []])
      assert.strictEqual(counted.reduce((sum, { rows }) => sum + rows, 0), 40)
      assert.strictEqual((yield* (yield* RunLedger).pending("dropped", 0, 100)).length, 40 - sent)
      assert.include((yield* Effect.flip(runs.resume("dropped", "bob"))).message, "canceled: it cannot be resumed")
    }).pipe(Effect.scoped, Effect.provide(here)))

  it.live("that was paused before its dispatch sends nothing until it is resumed, or at all", () =>
    Effect.gen(function*() {
      const runs = yield* Runs
      yield* planned("early", requests(3))
      const news = yield* Ref.make<ReadonlyArray<CommandRunNews>>([])
      const hand = yield* CommandRun
      const work = Effect.andThen(runs.pause("early", "bob", "not yet"), hand.dispatch({ runId: "early", concurrency: 4 }, (one) => Ref.update(news, (all) => [...all, one])))
      const fiber = yield* Effect.forkScoped(hand.registered({ runId: "early", source: "a", actor: "ada", worker: "w1" }, work, () => false))
      yield* until(Ref.get(news), (told) => told.length > 0)
      yield* runs.cancel("early", "bob", "not at all")
      assert.strictEqual((yield* Fiber.join(fiber)).canceled, "not at all")
      assert.deepStrictEqual([yield* Ref.get(news), yield* paid(requests(3)), (yield* view("early")).run.state], [["held", "canceled"], 0, "canceled"])
    }).pipe(Effect.scoped, Effect.provide(here)))

  it.live("is interrupted with its command, and the same command's next run says that it goes on with it", () =>
    Effect.gen(function*() {
      const all = requests(40)
      yield* FaultPlan.delayReply(1000, 4)
      const { fiber } = yield* begun("first", all)
      yield* until(paid(all), (count) => count >= 5)
      yield* Fiber.interrupt(fiber)
      const { run } = yield* view("first")
      assert.deepStrictEqual([run.state, run.detail, actsOn(run), run.endedAtMs === null], ["interrupted", "stopped", [], false])
      const { fiber: next } = yield* begun("second", all)
      yield* Fiber.join(next)
      assert.deepStrictEqual(new Set(yield* payments(all)), new Set([1]))
      const after = yield* view("first")
      assert.deepStrictEqual([after.run.state, after.run.detail], ["interrupted", "gone on with as run second"])
      // Its rows are counted as they stand, not as it left them.
      assert.deepStrictEqual(after.counted.map(({ rows, state }) => [state, rows]), [["succeeded", 40]])
      const { fiber: last } = yield* begun("third", all)
      yield* Fiber.join(last)
      assert.strictEqual((yield* view("first")).run.detail, "gone on with as run second")
    }).pipe(Effect.scoped, Effect.provide(here)))

  it.live("is the only one of its input while its command lives: a second one is told whose it is, and begins nothing", () =>
    Effect.gen(function*() {
      const hand = yield* CommandRun
      const gone = yield* Ref.make(false)
      const asked = yield* Ref.make<ReadonlyArray<unknown>>([])
      const process = { host: "here", pid: 7 }
      const wishOf = (runId: string, worker: string) => ({
        runId, source: "/in/july.csv", actor: "ada", worker, digest: "d1", process,
        isGone: (one: unknown) => Effect.andThen(Ref.update(asked, (all) => [...all, one]), Ref.get(gone))
      })
      const fiber = yield* Effect.forkScoped(hand.registered(wishOf("one", "w1"), Effect.never, () => false))
      yield* until(Effect.flatMap(RunRegistry, ({ find }) => find("one")), (run) => run !== undefined)
      const second = wishOf("two", "w2")
      for (const refused of [hand.free(second), hand.registered(second, Effect.die("it has begun"), () => false)]) {
        const error = yield* Effect.flip(refused)
        assert.strictEqual(error._tag === "RunError" && error.reason._tag, "SourceInHand")
        assert.strictEqual(error.message, "/in/july.csv is in hand already: run one by w1. Nothing was sent by this command; purser runs watch one follows the other")
      }
      assert.isUndefined(yield* Effect.flatMap(RunRegistry, ({ find }) => find("two")))
      yield* hand.free({ ...second, digest: "d2" })
      // Killed, and not missed yet.
      yield* Ref.set(gone, true)
      yield* hand.registered(second, Effect.void, () => true)
      assert.deepStrictEqual([(yield* view("two")).run.state, (yield* view("one")).run.state], ["finished", "interrupted"])
      assert.strictEqual((yield* view("one")).run.detail, "gone on with as run two")
      assert.deepInclude((yield* Ref.get(asked))[0], process)
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.scoped, Effect.provide(here)))

  it.live("ends as its command does: with an account that is not all paid it is finished, and with a failure interrupted", () =>
    Effect.gen(function*() {
      const hand = yield* CommandRun
      const end = (runId: string, isEnd: boolean) =>
        Effect.andThen(planned(runId, requests(1)), Effect.flip(hand.registered({ runId, source: runId, actor: "ada", worker: "w1" }, Effect.fail(new Refused()), () => isEnd)))
      yield* end("partly", true)
      yield* end("cut", false)
      assert.deepStrictEqual([(yield* view("partly")).run.state, (yield* view("cut")).run.state], ["finished", "interrupted"])
    }).pipe(Effect.scoped, Effect.provide(here)))
})
