/** How an act is carried out: written down with its actor before it is tried, and once more where it was refused or had nothing to change. */
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

/** An act that found everything as it was to be; the text says how. */
export interface NothingChanged {
  readonly unchanged: string
}

/** How an act ended that may have had nothing to change. */
export const changedOr = (isChanged: boolean, text: string, unchanged: string): string | NothingChanged => isChanged ? text : { unchanged }

/** Carries acts out on the trail that the console has. */
export const makePerform = Effect.map(OperatorTrail, (trail) =>
  <E extends ActRefused | Away | NotThere>(deed: Deed, effect: (actor: string) => Effect.Effect<string | NothingChanged, E>) =>
    Effect.gen(function*() {
      const { actor } = yield* Visitor
      const { act, detail, reason, subject } = deed
      const noteEnd = (how: string, text: string) => Effect.ignore(trail.note({ actor, act: `${act}: ${how}`, subject, reason, detail: text }))
      // First the trail: an act of which nobody knows who did it must not happen.
      yield* Effect.mapError(trail.note({ actor, act, subject, reason, detail: detail ?? null }), away)
      const done = yield* Effect.tapError(effect(actor), (error) => noteEnd("not done", error.message))
      if (typeof done === "string") return { text: done }
      yield* noteEnd("nothing changed", done.unchanged)
      return { text: `${done.unchanged} (nothing changed)` }
    }))
