/** A file of lines that is written as they come, and is in its place once it is whole. */
import { Effect, type FileSystem, type Scope } from "effect"
import type { CommandFailed } from "../CommandFailed.ts"
import { openWhole } from "./WholeFile.ts"

/** Takes lines; `finish` puts the file in its place. */
export interface LinesFile {
  readonly write: (line: string) => Effect.Effect<void>
  readonly finish: Effect.Effect<void>
}

/** Opens the file before anything else is done, so that a name that cannot be written refuses the command. */
export const openLines = Effect.fnUntraced(function*(flag: string, path: string): Effect.fn.Return<LinesFile, CommandFailed, FileSystem.FileSystem | Scope.Scope> {
  const { finish, write } = yield* openWhole(flag, path)
  return { write: (line) => Effect.orDie(write(`${line}\n`)), finish: Effect.orDie(finish) }
})
