/** Looks that come to an end in any case: a connection that is dead is else waited for as long as the network likes. */
import { type Duration, Effect, Fiber, Option } from "effect"

/** The answer of a look, or `undefined` after so long; what still waits for the network then is left behind. */
export const answeredWithin = <A, E, R>(look: Effect.Effect<A, E, R>, most: Duration.Duration): Effect.Effect<A | undefined, E, R> =>
  Effect.flatMap(Effect.forkDetach(look), (fiber) =>
    Effect.timeoutOption(Fiber.join(fiber), most).pipe(
      Effect.map(Option.getOrUndefined),
      Effect.ensuring(Effect.sync(() => fiber.interruptUnsafe()))
    ))
