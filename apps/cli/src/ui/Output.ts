/**
 * Where words go: results to standard output, everything that happens on the way to standard error. Whatever somebody else wrote into them,
 * no terminal obeys it.
 */
import { plainLines } from "@purser/core"
import { Effect } from "effect"
import { Notes } from "./Notes.ts"

/** A line of the result. */
export const out = (text: string): Effect.Effect<void> => Effect.sync(() => void process.stdout.write(`${plainLines(text)}\n`))

/** A line about what happens. */
export const note = (text: string): Effect.Effect<void> => Effect.flatMap(Notes, (write) => write(plainLines(text)))
