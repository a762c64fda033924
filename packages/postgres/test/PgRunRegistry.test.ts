/** The register of runs on both databases passes the suite of every register, and knows whose command is not heard of any more. */
import { RunRegistry, standingOf, WorkerBook } from "@purser/core"
import * as RunRegistryConformance from "@purser/testkit/RunRegistryConformance"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import * as DatabaseClock from "../src/DatabaseClock.ts"
import { PgRetention } from "../src/PgRetention.ts"
import { PgRunRegistry } from "../src/PgRunRegistry.ts"
import { PgWorkerBook } from "../src/PgWorkerBook.ts"
import * as TestDatabase from "../src/TestDatabase.ts"

for (const [name, database] of TestDatabase.layers) RunRegistryConformance.suite(name, Layer.provide(PgRunRegistry.layer, database))

const self = { worker: "w1", host: "here", pid: 7, serves: "run a.csv", version: "0" }
const runOf = (name: string) => ({ runId: name, name, state: "running", definition: "command", params: {}, options: null, actor: "ada", runner: self.worker } as const)
const standing = (name: string) => Effect.map(Effect.flatMap(RunRegistry, ({ find }) => find(name)), (run) => standingOf(run!))

describe("a run in a command's hands", () => {
  for (const [name, database] of TestDatabase.layers) {
    it.live(`is lost when its process is not heard of any more, and comes back with it, on ${name}`, () =>
      Effect.gen(function*() {
        const registry = yield* RunRegistry
        const workers = yield* WorkerBook
        yield* workers.beat(self)
        yield* DatabaseClock.advance("1 second")
        yield* registry.register(runOf("a"))
        yield* registry.register({ ...runOf("of a runner"), definition: "file" })
        assert.deepStrictEqual(yield* registry.standings, { abandoned: 1, running: 1 })
        yield* workers.beat({ ...self, worker: "r1", serves: "runs, 1 workers" })
        assert.deepStrictEqual(yield* registry.standings, { running: 2 })
        yield* DatabaseClock.advance("10 seconds")
        assert.deepStrictEqual([yield* standing("a"), (yield* registry.find("a"))!.runner], ["running", "w1"])
        const ids = (states: ReadonlyArray<"running" | "interrupted">) => Effect.map(registry.list({ states, limit: 10 }), (all) => all.map(({ runId }) => runId).toSorted())
        assert.deepStrictEqual([yield* ids(["running"]), yield* ids(["interrupted"])], [["a", "of a runner"], []])
        yield* DatabaseClock.advance("15 seconds")
        const lost = (yield* registry.find("a"))!
        // The state is the command's, which may come back; that it is lost is seen beside it.
        assert.deepStrictEqual([lost.state, standingOf(lost), lost.endedAtMs], ["running", "interrupted", null])
        assert.deepStrictEqual(yield* registry.standings, { abandoned: 1, interrupted: 1 })
        const since = lost.lostSinceMs!
        assert.isAtLeast(since, lost.createdAtMs)
        assert.deepStrictEqual([yield* ids(["running"]), yield* ids(["interrupted"])], [["of a runner"], ["a"]])
        yield* workers.beat(self)
        assert.strictEqual(yield* standing("a"), "running")
        yield* workers.leave(self.worker)
        assert.strictEqual(yield* standing("a"), "interrupted")
        // Another process under its name does not speak for it.
        yield* DatabaseClock.advance("1 second")
        yield* workers.beat({ ...self, pid: 8 })
        assert.strictEqual(yield* standing("a"), "interrupted")
        yield* registry.register(runOf("b"))
        assert.strictEqual(yield* standing("b"), "running")
        const over = yield* registry.change({ runId: "a", from: ["running"], to: "interrupted", actor: "bob", detail: "gone on with as run b" })
        assert.deepStrictEqual([over?.state, over?.lostSinceMs, over?.endedAtMs === null], ["interrupted", null, false])
        assert.deepStrictEqual(yield* registry.standings, { abandoned: 1, running: 1 })
        yield* registry.change({ runId: "b", from: ["running"], to: "failed", actor: "bob" })
        assert.deepStrictEqual(yield* registry.standings, { abandoned: 1, failed: 1 })
        yield* DatabaseClock.advance("2 days")
        assert.deepStrictEqual(yield* registry.standings, { abandoned: 1 })
      }).pipe(Effect.provide(Layer.mergeAll(PgRunRegistry.layer, PgWorkerBook.layer).pipe(Layer.provideMerge(database)))), 60_000)

    it.live(`has its input in hand while it lives, on ${name}`, () =>
      Effect.gen(function*() {
        const registry = yield* RunRegistry
        const workers = yield* WorkerBook
        yield* workers.beat(self)
        yield* DatabaseClock.advance("1 second")
        const register = (runId: string, digest?: string) => registry.register({ ...runOf(runId), ...(digest === undefined ? {} : { digest }) })
        const answers = yield* Effect.forEach(["one", "two", "three", "four"], (runId) => register(runId, "d1"), { concurrency: "unbounded" })
        const first = answers.filter(({ isNew }) => isNew)
        assert.deepStrictEqual([first.length, new Set(answers.map(({ run }) => run.runId)).size], [1, 1])
        assert.deepStrictEqual(first[0]!.run.params, { digest: "d1" })
        assert.deepStrictEqual([(yield* register("other", "d2")).isNew, (yield* register("none")).isNew], [true, true])
        const { runId } = first[0]!.run
        yield* registry.change({ runId, from: ["running"], to: "finished", actor: "ada" })
        assert.deepStrictEqual([(yield* register("five", "d1")).isNew, (yield* register("six", "d1")).run.runId], [true, "five"])
        // Not heard of for twenty seconds, it has nothing in hand.
        yield* DatabaseClock.advance("25 seconds")
        assert.isTrue((yield* register("seven", "d1")).isNew)
      }).pipe(Effect.provide(Layer.mergeAll(PgRunRegistry.layer, PgWorkerBook.layer).pipe(Layer.provideMerge(database)))), 60_000)

    it.live(`is forgotten by its age when nobody has gone on with it, on ${name}`, () =>
      Effect.gen(function*() {
        const registry = yield* RunRegistry
        const retention = yield* PgRetention
        yield* (yield* WorkerBook).beat(self)
        yield* registry.register(runOf("old"))
        yield* DatabaseClock.advance("40 days")
        yield* registry.register(runOf("young"))
        const ages = (days: number) => ({ engine: Duration.days(9999), dunning: Duration.days(9999), webhooks: Duration.days(9999), runs: Duration.days(days) })
        assert.strictEqual((yield* retention.count(ages(41))).runs, 0)
        assert.strictEqual((yield* retention.prune(ages(39))).runs, 1)
        assert.deepStrictEqual((yield* registry.list({ limit: 10 })).map(({ runId }) => runId), ["young"])
      }).pipe(Effect.provide(Layer.mergeAll(PgRunRegistry.layer, PgWorkerBook.layer, PgRetention.layer).pipe(Layer.provideMerge(database)))), 60_000)
  }
})
