/** Where servers put messages that they cannot serve. A reference and no service: a server works without a store. */
import { Context, Effect } from "effect"

/** A message as it came. */
export interface DeadLetter {
  /** The pattern that received it, for example `push-pull`. */
  readonly transport: string
  /** Whose key sealed it, when that is known. */
  readonly principal: string | null
  /** The error's reason, for example `MalformedMessage`. */
  readonly reason: string
  readonly detail: string
  readonly body: Uint8Array
}

/** Where servers put what they cannot serve; without a store it is a line of the log. */
export const DeadLetterSink = Context.Reference<(letter: DeadLetter) => Effect.Effect<void>>("@purser/core/DeadLetterSink", {
  defaultValue: () => ({ body, detail, reason, transport }) =>
    Effect.annotateLogs(Effect.logWarning("a message is dropped", detail), { reason, transport, bytes: body.length })
})
