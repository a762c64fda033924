/**
 * Fibers that outlive the fiber which started them, so that a closing server can wait for them within a bound and go on
 * even when one refuses to end.
 */
import { Effect, type Fiber, Latch } from "effect"

/** Work that was started and has not ended. */
export interface InFlight {
  /** Requests that are worked on. */
  readonly size: () => number
  /** Starts work on a number of requests. */
  readonly run: (effect: Effect.Effect<unknown>, requests: number) => Effect.Effect<void>
  /** Waits until nothing runs, but no longer than the bound; tells whether it was reached. */
  readonly settle: (boundMs: number) => Effect.Effect<boolean>
}

/** Makes an empty set. */
export const makeInFlight: Effect.Effect<InFlight> = Effect.gen(function*() {
  const fibers = new Set<Fiber.Fiber<unknown>>()
  const idle = yield* Latch.make(true)
  let size = 0
  return {
    size: () => size,
    run: Effect.fnUntraced(function*(effect, requests) {
      const fiber = yield* Effect.forkDetach(effect)
      fibers.add(fiber)
      size += requests
      yield* Latch.close(idle)
      fiber.addObserver(() => {
        fibers.delete(fiber)
        size -= requests
        if (fibers.size === 0) Latch.openUnsafe(idle)
      })
    }, Effect.uninterruptible),
    settle: (boundMs) =>
      Effect.interruptible(idle.await).pipe(Effect.timeoutOption(boundMs), Effect.map(() => fibers.size === 0))
  }
})
