import { assert, describe, it } from "@effect/vitest"
import { ChargePause, Ledger, SpendCap } from "@purser/core"
import { Database } from "@purser/postgres"
import { Clock, Duration, Effect, Fiber, Latch, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { watching } from "../../src/handlers/statusWatch.ts"

const decode = Schema.decodeEffect(Schema.fromJsonString(Schema.Struct({ stale: Schema.Boolean })))

describe("status --watch --json", () => {
  it.effect("tells of a ledger that went away as soon as a look has waited long enough, and of its return at the next look", () =>
    Effect.gen(function*() {
      const answers = yield* Latch.make(true)
      const ledger = yield* Ledger
      const told: Array<string> = []
      const watched = yield* watching({ period: undefined, interval: Duration.seconds(2), json: true }, (text) =>
        Effect.gen(function*() {
          const seconds = (yield* Clock.currentTimeMillis) / 1000
          const { stale } = yield* Effect.orDie(decode(text))
          told.push(`${seconds} s ${stale ? "stale" : "fresh"}`)
        })).pipe(
        Effect.provideService(Ledger, { ...ledger, report: () => Effect.andThen(answers.await, Effect.succeed([])) }),
        Effect.forkChild
      )
      yield* TestClock.adjust("1 second")
      yield* answers.close
      yield* TestClock.adjust("12 seconds")
      yield* answers.open
      yield* TestClock.adjust("3 seconds")
      yield* Fiber.interrupt(watched)
      assert.deepStrictEqual(told, ["0 s fresh", "12 s stale", "14 s fresh", "16 s fresh"])
    }).pipe(Effect.provide(Layer.mergeAll(
      Ledger.layerMemory, SpendCap.layerMemory, ChargePause.layerMemory,
      Layer.succeed(Database, { kind: "pglite", label: "memory", version: "18" })
    ))))
})
