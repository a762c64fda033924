/**
 * What a closing program has begun and still finishes. Work runs on a fiber of its own, so that whoever asked for it may leave: a
 * charge whose answer is on its way is not cut short because the run that sent it is.
 */
import { Cause, type Duration, Effect, Exit, Fiber } from "effect"
import { PurserClosed } from "../PurserError.ts"

/** Work that is waited for. */
export interface InWork {
  /** Runs it to its end, whether or not its caller stays. */
  readonly keep: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | PurserClosed, R>
  /** Waits until nothing is in work; what is not done in time is cut short, and told as `PurserClosed`. */
  readonly drain: (bound: Duration.Duration) => Effect.Effect<void>
}

export const makeInWork = (): InWork => {
  const fibers = new Set<Fiber.Fiber<unknown, unknown>>()
  const empty: Effect.Effect<void> = Effect.suspend(() => fibers.size === 0 ? Effect.void : Effect.andThen(Fiber.awaitAll([...fibers]), empty))
  return {
    keep: (effect) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function*() {
          const fiber = yield* Effect.forkDetach(Effect.interruptible(effect))
          fibers.add(fiber)
          fiber.addObserver(() => fibers.delete(fiber))
          const exit = yield* restore(Fiber.await(fiber))
          return yield* Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause) ? Effect.fail(new PurserClosed({ outcome: "unknown" })) : exit
        })),
    drain: (bound) =>
      empty.pipe(Effect.timeoutOrElse({
        duration: bound,
        orElse: () => Effect.andThen(Effect.logWarning(`${fibers.size} calls did not end in time and are cut short`), Fiber.interruptAll([...fibers]))
      }))
  }
}
