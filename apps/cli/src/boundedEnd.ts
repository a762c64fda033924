/** The end of a program that serves: waited for, but not for ever. */
import { type Duration, Effect, Fiber, Layer, Option, Scope } from "effect"
import { note } from "./ui/Output.ts"

/**
 * Runs on the layer, and gives what it opened so much time to close. What takes longer is left to the end of the process: locks and
 * sessions end with their connections, and leases by themselves.
 */
export const endingWithin = <A, E, R, R1, E1, R2>(
  program: Effect.Effect<A, E, R>,
  layer: Layer.Layer<R1, E1, R2>,
  bound: Duration.Input
): Effect.Effect<A, E | E1, R2 | Exclude<Exclude<R, Scope.Scope>, R1>> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const served = Layer.buildWithScope(layer, scope).pipe(
        Effect.flatMap((services) => Effect.provideContext(Effect.provideService(program, Scope.Scope, scope), services))
      )
      const exit = yield* Effect.exit(restore(served))
      const closing = yield* Effect.forkDetach(Scope.close(scope, exit))
      // In a fiber of its own: this one is interrupted already, and would not wait.
      const closed = yield* Effect.flatMap(Effect.forkDetach(Effect.timeoutOption(Fiber.await(closing), bound)), Fiber.join)
      if (Option.isNone(closed)) yield* note("stopped before all was closed: what was open ends with the process, and is gone on with elsewhere")
      return yield* exit
    })
  )
