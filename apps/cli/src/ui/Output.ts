/** Where words go: results to standard output, everything that happens on the way to standard error. */
import { Context, Effect } from "effect"
import { Screen } from "./Screen.ts"

/** How a line about what happens is written: on the screen, or as a line of the log where that is read by machines. */
export const Notes = Context.Reference<(text: string) => Effect.Effect<void>>("@purser/cli/Notes", {
  defaultValue: () => (text) => Effect.map(Screen, ({ print }) => print(text))
})

/** A line of the result. */
export const out = (text: string): Effect.Effect<void> => Effect.sync(() => void process.stdout.write(`${text}\n`))

/** A line about what happens. */
export const note = (text: string): Effect.Effect<void> => Effect.flatMap(Notes, (write) => write(text))
