/**
 * A worker that is asked for the same charge twice at once speaks with one voice: while it works on the first request it
 * does not answer the second by "another worker has it", because that worker is itself.
 */
import type { ChargeHandler, ChargeKey, ChargeOutcome, PipelineError } from "@purser/core"
import { Deferred, Effect, Exit } from "effect"

/** Wraps a handler; each request still reaches it. */
export const speakWithOneVoice = (handler: ChargeHandler): ChargeHandler => {
  const last = new Map<ChargeKey, Deferred.Deferred<ChargeOutcome, PipelineError>>()
  return (request) => {
    const handling = handler(request)
    // Done already: nobody could ask in between.
    if (Exit.isExit(handling) && Exit.isSuccess(handling)) return handling
    return Effect.suspend(() => {
      const key = request.chargeKey
      const earlier = last.get(key)
      const mine = Deferred.makeUnsafe<ChargeOutcome, PipelineError>()
      last.set(key, mine)
      return handling.pipe(
        Effect.catchIf((error) => error.reason._tag === "ChargeInProgress", (error) => earlier === undefined ? Effect.fail(error) : Deferred.await(earlier)),
        Effect.onExit((exit) => {
          if (last.get(key) === mine) last.delete(key)
          return Deferred.done(mine, exit)
        })
      )
    })
  }
}
