/** The deadlines of many calls, on a clock that stands still. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import { type Deadline, makeDeadlines } from "../src/internal/deadlines.ts"

const seconds = 1000

/** Begins a deadline, whose call notes in `late` when its time is over. */
const begun = Effect.fnUntraced(function*(deadlines: ReturnType<typeof makeDeadlines>, late: Array<string>, name: string) {
  return yield* Effect.withFiber<Deadline>((fiber) => {
    const clock = fiber.getRef(Clock.Clock)
    return Effect.succeed(deadlines.begin(fiber, () => late.push(`${name} ${clock.currentTimeMillisUnsafe()}`)))
  })
})

describe("deadlines", () => {
  it.effect("are each call's own, whoever began before it or ended meanwhile", () =>
    Effect.gen(function*() {
      const deadlines = makeDeadlines(10 * seconds)
      const late: Array<string> = []
      const first = yield* begun(deadlines, late, "first")
      yield* TestClock.adjust(2 * seconds)
      yield* begun(deadlines, late, "second")
      yield* TestClock.adjust(3 * seconds)
      const third = yield* begun(deadlines, late, "third")
      yield* begun(deadlines, late, "fourth")
      deadlines.end(first)
      yield* TestClock.adjust(7 * seconds - 1)
      assert.deepStrictEqual(late, [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(late, [`second ${12 * seconds}`])
      deadlines.end(third)
      yield* TestClock.adjust(60 * seconds)
      assert.deepStrictEqual(late, [`second ${12 * seconds}`, `fourth ${15 * seconds}`])
    }))

  it.effect("are watched again after all were over, and told once", () =>
    Effect.gen(function*() {
      const deadlines = makeDeadlines(10 * seconds)
      const late: Array<string> = []
      deadlines.end(yield* begun(deadlines, late, "first"))
      yield* TestClock.adjust(5 * seconds)
      const again = yield* begun(deadlines, late, "second")
      yield* TestClock.adjust(60 * seconds)
      deadlines.end(again)
      yield* begun(deadlines, late, "third")
      yield* TestClock.adjust(60 * seconds)
      assert.deepStrictEqual(late, [`second ${15 * seconds}`, `third ${75 * seconds}`])
    }))
})
