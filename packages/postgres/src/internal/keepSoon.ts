/**
 * Keeps things beside the way of a charge: a bounded queue stands before the store, one fiber writes what is in it with one
 * statement after another, and what does not fit is dropped and counted. Whoever hands something over never waits and never fails.
 */
import { Effect, Queue, type Scope } from "effect"

/** How things are kept. */
export interface KeepSoon<A> {
  /** How many wait at the most, and how many one statement takes. */
  readonly waitingMax: number
  readonly batchMax: number
  readonly write: (batch: ReadonlyArray<A>) => Effect.Effect<void>
  readonly dropped: (count: number) => Effect.Effect<void>
}

/** Hands one over; what waits when the scope ends is written before the connection goes. */
export const keepSoon = <A>({ batchMax, dropped, waitingMax, write }: KeepSoon<A>): Effect.Effect<(one: A) => Effect.Effect<void>, never, Scope.Scope> =>
  Effect.gen(function*() {
    const waiting = yield* Queue.dropping<A>(waitingMax)
    const writer = Queue.takeBetween(waiting, 1, batchMax).pipe(Effect.flatMap((batch) => Effect.uninterruptible(write(batch))), Effect.forever)
    yield* Effect.forkScoped(writer)
    yield* Effect.addFinalizer(() => Effect.flatMap(Queue.clear(waiting), (rest) => rest.length === 0 ? Effect.void : write(rest)))
    return (one) => Effect.flatMap(Queue.offer(waiting, one), (taken) => taken ? Effect.void : dropped(1))
  })
