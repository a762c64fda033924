/** Spans that cost nothing where nobody traces: one for each of a thousand requests in flight would cost more than the request. */
import { Effect, Tracer } from "effect"

/** A span around an effect when the program has a tracer. */
export const traced = <A, E, R>(name: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.withFiber((fiber) => fiber.context.mapUnsafe.has(Tracer.Tracer.key) ? Effect.withSpan(effect, name) : effect)
