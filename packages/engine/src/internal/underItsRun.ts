/** What log lines say of the work that they are about: the charge by its key, and the run that its request belongs to, where that is known. */
import { type ChargeKey, type ChargeRequest, RunMark } from "@purser/core"
import { type Cause, Context, Effect, References } from "effect"

/** What is done for the request, with its run on every line. */
export const underItsRun = <A, E, R>(request: ChargeRequest, done: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  const runId = RunMark.of(request)
  return runId === undefined ? done : Effect.annotateLogs(done, { runId })
}

/**
 * The work on a charge, with its key on every line, and what follows when that ends otherwise than with an answer. One frame where
 * `annotateLogs` within `onExit` are two, since every charge passes here.
 */
export const notingKey = <A, E>(
  chargeKey: ChargeKey,
  work: () => Effect.Effect<A, E>,
  onFailure: (cause: Cause.Cause<E>) => Effect.Effect<void> | undefined
): Effect.Effect<A, E> => {
  let leave: () => void = () => undefined
  return Effect.onExitPrimitive(
    Effect.withFiber((fiber) => {
      const around = fiber.context
      leave = () => fiber.setContext(around)
      fiber.setContext(Context.add(around, References.CurrentLogAnnotations, { ...fiber.getRef(References.CurrentLogAnnotations), chargeKey }))
      return work()
    }),
    (exit) => {
      leave()
      const after = exit._tag === "Success" ? undefined : onFailure(exit.cause)
      return after === undefined ? undefined : Effect.annotateLogs(after, { chargeKey })
    }
  )
}
