/** The engine from the configuration runs workflows on both databases, and a process outside hands work to one inside. */
import { definitionsGroup } from "@purser/engine"
import { Database, engineTables, Migrations } from "@purser/postgres"
import * as TestDatabase from "@purser/postgres/TestDatabase"
import { assert, describe, it } from "@effect/vitest"
import { Cause, ConfigProvider, Effect, Exit, Layer, Option, Queue, Schedule, Schema } from "effect"
import { ClusterSchema } from "effect/cluster"
import { SqlClient } from "effect/sql"
import { Activity, Workflow } from "effect/workflow"
import { EngineUnavailable } from "../src/EngineUnavailable.ts"
import { Runner } from "../src/Runner.ts"

const Greet = Workflow.make("Greet", { payload: { name: Schema.String }, success: Schema.String, idempotencyKey: ({ name }) => name })

const Defined = Workflow.make("Defined", { payload: { number: Schema.Int }, success: Schema.Int, idempotencyKey: ({ number }) => String(number) })
  .annotate(ClusterSchema.ShardGroup, () => definitionsGroup)

const greetings = (done: Queue.Queue<string>) =>
  Greet.toLayer(Effect.fnUntraced(function*({ name }) {
    return yield* Activity.make({ name: "greet", success: Schema.String, execute: Effect.as(Queue.offer(done, name), `hello ${name}`) })
  }))

describe("Runner", () => {
  for (const [name, database] of TestDatabase.layers) {
    it.live(`runs a workflow once on ${name}, in tables of its own`, () =>
      Effect.gen(function*() {
        const done = yield* Queue.unbounded<string>()
        yield* Effect.gen(function*() {
          assert.strictEqual(yield* Greet.execute({ name: "Ada" }), "hello Ada")
          assert.strictEqual(yield* Greet.execute({ name: "Ada" }), "hello Ada")
          assert.strictEqual(yield* Queue.size(done), 1)
          const sql = yield* SqlClient.SqlClient
          const tables = yield* sql<{ readonly name: string }>`select table_name as name from information_schema.tables where table_schema = 'public' order by 1`
          assert.isAtLeast(tables.length, 2)
          assert.deepStrictEqual(tables.filter((table) => !table.name.startsWith(engineTables)), [])
        }).pipe(Effect.provide(greetings(done).pipe(Layer.provideMerge(Runner.layer), Layer.provideMerge(database))))
      }), 60_000)
  }

  it.live("takes work from a process that runs none", () =>
    Effect.gen(function*() {
      const url = yield* TestDatabase.postgresUrl
      const database = () => Layer.provideMerge(Migrations.layer, Layer.fresh(Database.layerUrl(url)))
      const done = yield* Queue.unbounded<string>()
      const outside = Effect.gen(function*() {
        const id = yield* Greet.execute({ name: "Grace" }, { discard: true })
        return yield* Greet.poll(id).pipe(Effect.repeat({ until: Option.isSome, schedule: Schedule.spaced("50 millis") }))
      }).pipe(Effect.provide(Layer.fresh(Runner.layerClient).pipe(Layer.provideMerge(database()))))
      const inside = Effect.never.pipe(Effect.provide(greetings(done).pipe(Layer.provideMerge(Layer.fresh(Runner.layer)), Layer.provideMerge(database()))))
      const result = yield* Effect.raceFirst(outside, inside)
      assert.deepStrictEqual(Option.map(result, (found) => found._tag), Option.some("Complete"))
      assert.strictEqual(yield* Queue.take(done), "Grace")
    }).pipe(Effect.scoped), 60_000)

  it.live("says so when its tables cannot be made, instead of failing inside", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      yield* sql`drop schema public cascade`
      for (const layer of [Runner.layer, Runner.layerClient]) {
        const error = yield* Effect.flip(Layer.build(Layer.fresh(layer)))
        assert.deepStrictEqual([error._tag, error instanceof EngineUnavailable && error.isRetryable], ["EngineUnavailable", true])
        assert.match(error.message, /^the workflow engine did not start: its tables cannot be used: .*schema/)
      }
    }).pipe(Effect.scoped, Effect.provide(TestDatabase.layers.find(([name]) => name === "postgres")![1])), 60_000)

  it.live("listens on the loopback, and elsewhere only where that is allowed by name", () =>
    Effect.gen(function*() {
      const listening = (settings: Readonly<Record<string, string>>) =>
        Effect.scoped(Effect.exit(Layer.build(Layer.fresh(Runner.layer).pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(settings)))))))
      for (const settings of [{ PURSER_RUNNER_HOST: "0.0.0.0" }, { PURSER_RUNNER_LISTEN: "0.0.0.0" }, { PURSER_RUNNER_HOST: "runner.internal" }]) {
        const exit = yield* listening(settings)
        assert.include(Exit.isFailure(exit) ? String(Cause.squash(exit.cause)) : "", "PURSER_RUNNER_ALLOW_PLAIN=true", JSON.stringify(settings))
      }
      for (const settings of [{}, { PURSER_RUNNER_HOST: "runner.internal", PURSER_RUNNER_LISTEN: "127.0.0.1" }, { PURSER_RUNNER_LISTEN: "0.0.0.0", PURSER_RUNNER_ALLOW_PLAIN: "true" }]) {
        assert.isTrue(Exit.isSuccess(yield* listening(settings)), JSON.stringify(settings))
      }
    }).pipe(Effect.provide(TestDatabase.layers.find(([name]) => name === "postgres")![1])), 60_000)

  it.live("takes no time of silence in which a busy database could not refresh a lock", () =>
    Effect.gen(function*() {
      for (const silence of ["100 millis", "1999 millis", "11 minutes"]) {
        const exit = yield* Effect.scoped(Effect.exit(Layer.build(Layer.fresh(Runner.layer).pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ PURSER_RUNNER_TAKEOVER: silence })))))))
        assert.match(Exit.isFailure(exit) ? String(Cause.squash(exit.cause)) : "", /from 2 seconds to 10 minutes[\s\S]*PURSER_RUNNER_TAKEOVER/, silence)
      }
    }).pipe(Effect.provide(TestDatabase.layers.find(([name]) => name === "postgres")![1])), 60_000)

  it.live("gives what needs definitions to those alone that know them", () =>
    Effect.gen(function*() {
      const url = yield* TestDatabase.postgresUrl
      const database = () => Layer.provideMerge(Migrations.layer, Layer.fresh(Database.layerUrl(url)))
      const done = yield* Queue.unbounded<string>()
      const process = (name: string, engine: typeof Runner.layer) =>
        Layer.build(
          Defined.toLayer(({ number }) => Effect.as(Queue.offer(done, name), number)).pipe(Layer.provide(Layer.fresh(engine)), Layer.provide(database()))
        )
      yield* process("host", Runner.layerNoDefinitions)
      yield* process("runner", Runner.layer)
      const client = yield* Layer.build(Layer.fresh(Runner.layerClient).pipe(Layer.provide(database())))
      const numbers = Array.from({ length: 8 }, (_, number) => number)
      const answers = Effect.forEach(numbers, (number) => Defined.execute({ number }), { concurrency: "unbounded" })
      assert.deepStrictEqual(yield* Effect.provide(answers, client), numbers)
      assert.deepStrictEqual(yield* Queue.takeAll(done), numbers.map(() => "runner"))
    }).pipe(Effect.scoped), 60_000)
})
