/** What a run outlives: answers that were lost, a store that is away for a moment, and a frozen runner's late word. The simulated worlds found them. */
import { LedgerError, LedgerUnavailable, RunRegistry } from "@purser/core"
import { patientMessages, RunDefinitions, Runs } from "@purser/engine"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { ClusterError, ClusterWorkflowEngine, MessageStorage, RunnerHealth, Runners, RunnerStorage, Sharding, ShardingConfig, type Snowflake } from "effect/cluster"
import { bookWith, paid, payments, plain, report, requests, run, start, until, view, wish, world } from "../src/RunWorld.ts"

/** The first call of each kind is carried out or not, and its answer is lost. */
const lostOnce = <E>(error: E) => {
  const seen = new Set<string>()
  return (kind: string, isCarriedOut: boolean) => <A, E2, R>(call: Effect.Effect<A, E2, R>): Effect.Effect<A, E | E2, R> =>
    Effect.suspend((): Effect.Effect<A, E | E2, R> => {
      if (seen.has(kind)) return call
      seen.add(kind)
      return isCarriedOut ? Effect.andThen(call, Effect.fail(error)) : Effect.fail(error)
    })
}

/** The engine of a cluster of one, on messages in memory that are lost once each. */
const forgetful = () => {
  const lost = lostOnce(new ClusterError.PersistenceError({ cause: new Error("the connection was lost") }))
  const storage = Layer.effect(MessageStorage.MessageStorage, Effect.map(MessageStorage.MessageStorage, (kept) =>
    MessageStorage.MessageStorage.of({
      ...kept,
      saveRequest: (message) => lost(`${message.envelope.tag} ${JSON.stringify(message.envelope.payload)}`, message.envelope.tag !== "run")(kept.saveRequest(message)),
      repliesForUnfiltered: (ids: Iterable<Snowflake.Snowflake>) => lost("replies", false)(kept.repliesForUnfiltered(ids))
    }))).pipe(Layer.provide(MessageStorage.layerMemory))
  return ClusterWorkflowEngine.layer.pipe(
    Layer.provide(Sharding.layer),
    Layer.provide(Runners.layerNoop),
    Layer.provide(patientMessages(storage)),
    Layer.provide([RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
    Layer.provide(ShardingConfig.layer({ shardsPerGroup: 1, availableShardGroups: ["default", "definitions"], assignedShardGroups: ["default", "definitions"], entityMessagePollInterval: "20 millis" }))
  )
}

describe("a run", () => {
  it.live("that was planned, and whose planner was not told so, is planned once", () => {
    const lost = lostOnce(new LedgerError({ reason: new LedgerUnavailable({ operation: "plan", detail: "the connection was lost" }), chargeKey: null }))
    return Effect.provide(Effect.gen(function*() {
      yield* start(wish("july", { count: 12, from: 0 }))
      const { open, rows, state } = yield* report("july")
      assert.deepStrictEqual([state, rows, open], ["finished", 12, 0])
      assert.deepStrictEqual(new Set(yield* payments(requests(12))), new Set([1]))
    }), world(RunDefinitions.layer(plain), "1 day", bookWith(({ plan }) => ({ plan: (...given) => lost("plan", true)(plan(...given)) }))))
  })

  run("that is paused goes on though a frozen runner has noted another step meanwhile", RunDefinitions.layer(plain), Effect.gen(function*() {
    const registry = yield* RunRegistry
    const runs = yield* Runs
    /** Paused, and noted by a runner that was thought to be dead to be at a step that it was about to begin when it stood still. */
    const parked = Effect.fnUntraced(function*(name: string) {
      yield* registry.register({ ...wish(name, { count: 3, from: 0 }), runId: name, state: "waiting", options: wish("", {}).options })
      yield* runs.pause(name, "bob", "a look")
      yield* start(wish(name, {}))
      yield* until(view(name), ({ run }) => run.step?.startsWith("hold/") === true)
      yield* registry.note(name, { runner: "frozen", step: "plan" })
    })
    yield* parked("resumed")
    yield* runs.pause("resumed", "bob", "said again")
    yield* Effect.sleep("30 millis")
    // Nobody has looked again: the word that it is paused is no word that it goes on.
    assert.deepStrictEqual([(yield* view("resumed")).run.step, yield* paid(requests(3))], ["plan", 0])
    yield* runs.resume("resumed", "bob")
    assert.strictEqual((yield* report("resumed")).state, "finished")
    assert.strictEqual(yield* paid(requests(3)), 3)
    yield* parked("canceled")
    yield* runs.cancel("canceled", "bob", "enough")
    assert.strictEqual((yield* report("canceled")).state, "canceled")
  }))

  it.live("outlives an engine's store that is away for a moment, whenever it is asked", () =>
    Effect.provide(Effect.gen(function*() {
      yield* start(wish("july", { count: 12, from: 0 }))
      const { open, rows, state } = yield* report("july")
      assert.deepStrictEqual([state, rows, open], ["finished", 12, 0])
      assert.deepStrictEqual(new Set(yield* payments(requests(12))), new Set([1]))
    }), world(RunDefinitions.layer(plain), "1 day", undefined, {}, forgetful())), 30_000)
})
