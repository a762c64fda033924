/** Where it is told why a step of a run waits. */
import { Context, Effect } from "effect"

/** Called with the reason, and with null when the step goes on. */
export const WaitNote = Context.Reference<(why: string | null) => Effect.Effect<void>>("@purser/engine/WaitNote", {
  defaultValue: () => () => Effect.void
})
