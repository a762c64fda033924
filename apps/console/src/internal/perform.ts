/** How an act is carried out: written down with its actor before it is tried, and once more where it was refused. */
import { OperatorTrail } from "@purser/core"
import { Effect } from "effect"
import { type ActRefused, Away, type NotThere } from "../api/ConsoleError.ts"
import { Visitor } from "../api/Visitor.ts"

/** A store's failure in the words of the API. */
export const away = (error: { readonly message: string }): Away => new Away({ message: error.message })

/** What is done, to what, and why. */
export interface Deed {
  readonly act: string
  readonly subject: string
  readonly reason: string
  readonly detail?: string
}

/** Carries acts out on the trail that the console has. */
export const makePerform = Effect.map(OperatorTrail, (trail) =>
  <E extends ActRefused | Away | NotThere>(deed: Deed, effect: (actor: string) => Effect.Effect<string, E>) =>
    Effect.gen(function*() {
      const { actor } = yield* Visitor
      const { act, detail, reason, subject } = deed
      // First the trail: an act of which nobody knows who did it must not happen.
      yield* Effect.mapError(trail.note({ actor, act, subject, reason, detail: detail ?? null }), away)
      const text = yield* Effect.tapError(effect(actor), (error) =>
        Effect.ignore(trail.note({ actor, act: `${act}: not done`, subject, reason, detail: error.message })))
      return { text }
    }))
