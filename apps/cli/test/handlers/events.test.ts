/** `purser events --once` ends, whatever the publisher does. */
import type { FeedNotice } from "@purser/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { upToNow } from "../../src/handlers/events.ts"

const silent: FeedNotice = { _tag: "Silent", silentMs: 5000 }
const epoch = (name: string): FeedNotice => ({ _tag: "Epoch", epoch: name })
const synced: FeedNotice = { _tag: "Synced", cursor: { epoch: "e", sequence: 7 } }
const after = (seconds: number, notice: FeedNotice) => Stream.fromEffect(Effect.delay(Effect.succeed(notice), seconds * 1000))

describe("everything up to now", () => {
  it.effect("is refused, with 1, where nobody answers", () =>
    Effect.gen(function*() {
      const fiber = yield* Effect.forkChild(Effect.flip(Stream.runDrain(upToNow(Stream.concat(after(5, silent), Stream.never)))))
      yield* TestClock.adjust("15 seconds")
      const error = yield* Fiber.join(fiber)
      assert.strictEqual(error.status, 1)
      assert.include(error.message, "no publisher of the feed has answered for 15 seconds")
    }))

  it.effect("is waited for while it comes, and is the end", () =>
    Effect.gen(function*() {
      const slow = Stream.concat(after(14, epoch("a")), Stream.concat(after(14, epoch("b")), Stream.concat(after(14, synced), Stream.never)))
      const fiber = yield* Effect.forkChild(Stream.runCollect(upToNow(slow)))
      yield* TestClock.adjust("42 seconds")
      assert.deepStrictEqual(yield* Fiber.join(fiber), [epoch("a"), epoch("b"), synced])
    }))
})
