/** Callers of an Effect, as a program has them that hands over one job after the other. */
import { Effect } from "effect"

/** As many callers as may be under way, each with one call after the other, until all have been made. */
export const inLoops = <E>(count: number, callers: number, call: (index: number) => Effect.Effect<unknown, E>): Effect.Effect<void, E> => {
  let at = 0
  const caller = Effect.whileLoop({ while: () => at < count, body: () => call(at++), step: () => undefined })
  return Effect.all(Array.from({ length: Math.min(callers, count) }, () => caller), { concurrency: "unbounded", discard: true })
}
