/**
 * Deadlines of calls that may all take equally long. They come in the order in which the calls began, so that one fiber that
 * sleeps until the first of them is enough for all; a fiber for each call, as `Effect.timeout` has two, costs as much as the check of its answer.
 */
import { Clock, type Context, Effect, type Fiber } from "effect"

/** One call's deadline. */
export class Deadline {
  readonly atMs: number
  readonly onLate: () => void

  constructor(atMs: number, onLate: () => void) {
    this.atMs = atMs
    this.onLate = onLate
  }
}

/** The deadlines of one client. */
export interface Deadlines {
  /** `onLate` is called when the time has passed, unless the deadline is over by then. */
  readonly begin: (fiber: Fiber.Fiber<unknown, unknown>, onLate: () => void) => Deadline
  readonly end: (deadline: Deadline) => void
}

// The time of day may be set while a call is under way.
const nowMs = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

/** Nothing is under way yet. */
export const makeDeadlines = (timeoutMs: number): Deadlines => {
  const pending = new Set<Deadline>()
  let watcher: Fiber.Fiber<void> | undefined

  const watch: Effect.Effect<void> = Effect.clockWith((clock) => {
    const [first] = pending
    if (first === undefined) {
      // In the same step as the look, so that no call begins between the two.
      watcher = undefined
      return Effect.void
    }
    const leftMs = Math.ceil(first.atMs - nowMs(clock))
    if (leftMs > 0) return Effect.andThen(Effect.sleep(leftMs), watch)
    pending.delete(first)
    first.onLate()
    return watch
  })

  const watchIn = (context: Context.Context<never>): Fiber.Fiber<void> => {
    const begun = Effect.runForkWith(context)(watch)
    begun.addObserver(() => {
      if (watcher === begun) watcher = undefined
    })
    return begun
  }

  return {
    begin: (fiber, onLate) => {
      const deadline = new Deadline(nowMs(fiber.getRef(Clock.Clock)) + timeoutMs, onLate)
      pending.add(deadline)
      watcher ??= watchIn(fiber.context)
      return deadline
    },
    end: (deadline) => {
      if (!pending.delete(deadline) || pending.size > 0) return
      // A sleeper would keep a program alive that has nothing left to do.
      watcher?.interruptUnsafe()
      watcher = undefined
    }
  }
}
