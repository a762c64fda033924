/** A file of lines that is written as they come: beside the name first, and in its place once it is whole. */
import { Effect, FileSystem, type Scope } from "effect"
import { refused } from "../CommandFailed.ts"

/** Takes lines; `finish` puts the file in its place. */
export interface LinesFile {
  readonly write: (line: string) => Effect.Effect<void>
  readonly finish: Effect.Effect<void>
}

/** Opens the file before anything else is done, so that a name that cannot be written refuses the command. */
export const openLines = Effect.fnUntraced(function*(flag: string, path: string): Effect.fn.Return<LinesFile, ReturnType<typeof refused>, FileSystem.FileSystem | Scope.Scope> {
  const fs = yield* FileSystem.FileSystem
  const partial = `${path}.partial`
  const target = yield* Effect.orElseSucceed(fs.stat(path), () => undefined)
  if (target?.type === "Directory") return yield* refused(`--${flag} ${path} is a folder`)
  const file = yield* fs.open(partial, { flag: "w" }).pipe(
    Effect.mapError((error) => refused(`--${flag} ${path} cannot be written: ${error.message}`))
  )
  const encoder = new TextEncoder()
  return {
    write: (line) => Effect.orDie(file.writeAll(encoder.encode(`${line}\n`))),
    finish: Effect.orDie(Effect.andThen(file.sync, fs.rename(partial, path)))
  }
})
