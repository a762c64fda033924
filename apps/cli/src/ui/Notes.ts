/** How a line about what happens is written: on the screen, or as a line of the log where that is read by machines. */
import { Context, Effect } from "effect"
import { Screen } from "./Screen.ts"

/** On the screen by default. */
export const Notes = Context.Reference<(text: string) => Effect.Effect<void>>("@purser/cli/Notes", {
  defaultValue: () => (text) => Effect.map(Screen, ({ print }) => print(text))
})
