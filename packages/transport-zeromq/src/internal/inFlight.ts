/**
 * Fibers that outlive the fiber which started them, so that a closing server can wait for them within a bound and go on
 * even when one refuses to end.
 */
import { Effect, type Fiber, Latch } from "effect"

/** Work that was started and has not ended. */
export interface InFlight {
  readonly size: () => number
  readonly run: (effect: Effect.Effect<unknown>) => Effect.Effect<void>
  /** Waits until nothing runs, but no longer than the bound; tells whether it was reached. */
  readonly settle: (boundMs: number) => Effect.Effect<boolean>
}

/** Makes an empty set. */
export const makeInFlight: Effect.Effect<InFlight> = Effect.gen(function*() {
  const fibers = new Set<Fiber.Fiber<unknown>>()
  const idle = yield* Latch.make(true)
  return {
    size: () => fibers.size,
    run: Effect.fnUntraced(function*(effect) {
      const fiber = yield* Effect.forkDetach(effect)
      fibers.add(fiber)
      yield* Latch.close(idle)
      fiber.addObserver(() => {
        fibers.delete(fiber)
        if (fibers.size === 0) Latch.openUnsafe(idle)
      })
    }, Effect.uninterruptible),
    settle: (boundMs) =>
      Effect.interruptible(idle.await).pipe(Effect.timeoutOption(boundMs), Effect.map(() => fibers.size === 0))
  }
})
