/** A file of lines that is written as they come, and is in its place once it is whole. */
import { Effect, type FileSystem, type PlatformError, type Scope } from "effect"
import { CommandFailed, exitStatus } from "../CommandFailed.ts"
import { openWhole } from "./WholeFile.ts"

/** Takes lines; `finish` puts the file in its place, or says why that cannot be: what is written of goes on, whatever becomes of the file. */
export interface LinesFile {
  readonly write: (line: string) => Effect.Effect<void>
  readonly finish: Effect.Effect<void, CommandFailed>
}

/** Opens the file before anything else is done, so that a name that cannot be written refuses the command. */
export const openLines = Effect.fnUntraced(function*(flag: string, path: string): Effect.fn.Return<LinesFile, CommandFailed, FileSystem.FileSystem | Scope.Scope> {
  const { finish, write } = yield* openWhole(flag, path)
  let failed: PlatformError.PlatformError | undefined
  return {
    write: (line) =>
      Effect.suspend(() => failed !== undefined ? Effect.void : Effect.catch(write(`${line}\n`), (error) => Effect.sync(() => {
        failed = error
      }))),
    finish: Effect.mapError(
      Effect.suspend(() => failed === undefined ? finish : Effect.fail(failed)),
      ({ message }) => new CommandFailed({ text: `--${flag} ${path} could not be written to its end: ${message}`, status: exitStatus.partial })
    )
  }
})
