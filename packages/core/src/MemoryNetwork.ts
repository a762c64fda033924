/** What the memory transport does to messages: the network that a test wants. The default delivers everything once. */
import { Context, Effect } from "effect"

/** One thing that happens to one message. A lost message is noticed at once: the sender's attempt times out without waiting. */
export type MessageFate =
  | { readonly _tag: "Deliver" }
  | { readonly _tag: "Lose" }
  | { readonly _tag: "Repeat" }
  | { readonly _tag: "Delay"; readonly delayMs: number }

/** Asked once for every message; reordering is a delay of some of them. */
export type MessageFateOf = (direction: "request" | "reply") => Effect.Effect<MessageFate>

/** The fate of messages in `Transport.layerMemory`. */
export const MemoryNetwork = Context.Reference<MessageFateOf>("@purser/core/MemoryNetwork", {
  defaultValue: () => () => Effect.succeed({ _tag: "Deliver" })
})
