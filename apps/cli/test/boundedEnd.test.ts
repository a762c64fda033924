/** A program that serves ends when it is stopped, though something that it opened does not close. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Ref } from "effect"
import { TestClock } from "effect/testing"
import { endingWithin } from "../src/boundedEnd.ts"
import { Notes } from "../src/ui/Notes.ts"

class Opened extends Context.Service<Opened, { readonly closed: Ref.Ref<boolean> }>()("@purser/cli/test/Opened") {}

/** Closes when this has come about. */
const closingAfter = (closing: Effect.Effect<void>, closed: Ref.Ref<boolean>) =>
  Layer.effect(Opened, Effect.acquireRelease(Effect.succeed({ closed }), () => Effect.andThen(closing, Ref.set(closed, true))))

const stopped = Effect.fnUntraced(function*(closing: Effect.Effect<void>) {
  const closed = yield* Ref.make(false)
  const said = yield* Ref.make<ReadonlyArray<string>>([])
  const serving = endingWithin(Effect.andThen(Opened, Effect.never), closingAfter(closing, closed), "10 seconds").pipe(
    Effect.provideService(Notes, (text: string) => Ref.update(said, (all) => [...all, text]))
  )
  const fiber = yield* Effect.forkChild(serving, { startImmediately: true })
  const end = yield* Effect.forkChild(Effect.andThen(Fiber.interrupt(fiber), Fiber.await(fiber)), { startImmediately: true })
  yield* TestClock.adjust("10 seconds")
  const exit = yield* Fiber.join(end)
  return { isInterrupted: Exit.hasInterrupts(exit), closed: yield* Ref.get(closed), said: (yield* Ref.get(said)).length }
})

describe("a program that is stopped", () => {
  it.effect("waits for what closes in time, and says nothing", () =>
    Effect.map(stopped(Effect.sleep("9 seconds")), (end) => assert.deepStrictEqual(end, { isInterrupted: true, closed: true, said: 0 })))
  it.effect("leaves what does not, and says so", () =>
    Effect.map(stopped(Effect.never), (end) => assert.deepStrictEqual(end, { isInterrupted: true, closed: false, said: 1 })))
  it.effect("fails as it failed", () =>
    Effect.gen(function*() {
      const closed = yield* Ref.make(false)
      const failed = yield* Effect.flip(endingWithin(Effect.andThen(Opened, Effect.fail("why")), closingAfter(Effect.void, closed), "1 second"))
      assert.deepStrictEqual([failed, yield* Ref.get(closed)], ["why", true])
    }))
})
