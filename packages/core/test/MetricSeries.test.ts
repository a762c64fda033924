import { assert, describe, it } from "@effect/vitest"
import { MetricSeries } from "@purser/core"
import { Context, Effect, Exit, Fiber, Layer, Metric } from "effect"
import { TestClock } from "effect/testing"

const registryOf = () => Layer.succeedContext(Context.make(Metric.MetricRegistry, new Map()))
const seconds = MetricSeries.seconds("test_seconds", "of a test", { step: "claim" })
const same = Metric.histogram("test_same", { boundaries: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] })

describe("a series that is looked up once", () => {
  it.effect("is the one that the metric itself shows and updates", () =>
    Effect.gen(function*() {
      const counter = Metric.counter("test_total", { attributes: { state: "paid" } })
      yield* Metric.update(counter, 2)
      const update = MetricSeries.updateOf(counter, yield* Effect.context<never>())
      update(3)
      yield* Metric.update(counter, 4)
      assert.strictEqual((yield* Metric.value(counter)).count, 9)
      assert.strictEqual((yield* Metric.snapshot).length, 1)
    }).pipe(Effect.provide(registryOf())))

  it.effect("has the attributes around", () =>
    Effect.gen(function*() {
      const counter = Metric.counter("test_total", { attributes: { state: "paid" } })
      MetricSeries.updateOf(counter, yield* Effect.context<never>())(1)
      assert.deepStrictEqual((yield* Metric.snapshot).map(({ attributes, state }) => [attributes, state]), [[{ state: "paid", worker: "w" }, { count: 1, incremental: false }]])
    }).pipe(Effect.provideService(Metric.CurrentMetricAttributes, { worker: "w" }), Effect.provide(registryOf())))
})

describe("a stopwatch", () => {
  it.effect("shows what a histogram of Effect shows of the same durations, those on a boundary and above all as well", () =>
    Effect.gen(function*() {
      const watch = yield* MetricSeries.stopwatch(seconds)
      for (const millis of [0, 1, 1.5, 2.5, 3, 100, 250, 29_999, 30_000, 30_001, 90_000]) {
        const since = watch.now()
        yield* TestClock.adjust(millis)
        assert.strictEqual(watch.ended(since), watch.now())
        yield* Metric.update(same, Math.round(millis * 1e6) / 1e9)
      }
      const [ours, theirs] = [yield* Metric.value(seconds), yield* Metric.value(same)]
      assert.deepStrictEqual({ ...ours, sum: Math.round(ours.sum * 1e6) }, { ...theirs, sum: Math.round(theirs.sum * 1e6) })
      assert.deepStrictEqual((yield* Metric.snapshot).map(({ attributes, description, id, type }) => [id, type, description, attributes]), [
        ["test_seconds", "Histogram", "of a test", { step: "claim", unit: "seconds" }],
        ["test_same", "Histogram", undefined, undefined]
      ])
    }).pipe(Effect.provide(registryOf())))

  it.effect("is at nothing before anything was measured, as Effect's is", () =>
    Effect.gen(function*() {
      yield* MetricSeries.stopwatch(seconds)
      assert.deepStrictEqual(yield* Metric.value(seconds), yield* Metric.value(same))
    }).pipe(Effect.provide(registryOf())))

  it.effect("goes on from what was measured before, and is one for all who ask in one registry", () =>
    Effect.gen(function*() {
      for (const value of [0.002, 0.2, 99]) yield* Metric.update(seconds, value)
      const before = yield* Metric.value(seconds)
      const [one, other] = [yield* MetricSeries.stopwatch(seconds), yield* MetricSeries.stopwatch(seconds)]
      assert.deepStrictEqual(yield* Metric.value(seconds), before)
      one.ended(one.now())
      other.ended(other.now())
      yield* Metric.update(seconds, 0.2)
      const { buckets, count, max, min } = yield* Metric.value(seconds)
      assert.deepStrictEqual([count, min, max, buckets[0], buckets[7], buckets.at(-1)], [6, 0, 99, [0.001, 2], [0.25, 5], [30, 5]])
    }).pipe(Effect.provide(registryOf())))

  it.effect("measures an effect however it ends", () =>
    Effect.gen(function*() {
      const watch = yield* MetricSeries.stopwatch(seconds)
      const around = <A, E>(effect: Effect.Effect<A, E>) => Effect.suspend(() => watch.around(effect))
      assert.strictEqual(yield* around(Effect.succeed(1)), 1)
      assert.strictEqual(yield* Effect.flip(around(Effect.fail("no"))), "no")
      assert.isTrue(Exit.hasDies(yield* Effect.exit(around(Effect.die("bug")))))
      const fiber = yield* Effect.forkChild(around(Effect.never), { startImmediately: true })
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.interrupt(fiber)
      const { count, max } = yield* Metric.value(seconds)
      assert.deepStrictEqual([count, max], [4, 2])
    }).pipe(Effect.provide(registryOf())))
})
