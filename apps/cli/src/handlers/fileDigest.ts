/** What a run of a file reads, in short: by it two commands at once know that they have the same. */
import { Effect, FileSystem, Stream } from "effect"
import { createHash } from "node:crypto"
import type { RunOptions } from "./planFile.ts"

/** Whether the rows are there for one reading alone, as those of a pipe. */
export const isReadOnce = Effect.fnUntraced(function*(file: string) {
  if (file === "-") return true
  return (yield* (yield* FileSystem.FileSystem).stat(file)).type !== "File"
}, Effect.orElseSucceed(() => false))

/** The file's bytes and how they are read. Of what can be read once only, such as a pipe, there is none. */
export const fileDigest = Effect.fnUntraced(function*({ file, input, skipInvalid }: Pick<RunOptions, "file" | "input" | "skipInvalid">) {
  const fs = yield* FileSystem.FileSystem
  if (yield* isReadOnce(file)) return undefined
  const begun = () => createHash("sha256").update(JSON.stringify([skipInvalid, { ...input, map: [...input.map ?? []] }]))
  return (yield* Stream.runFold(fs.stream(file), begun, (hash, bytes) => hash.update(bytes))).digest("hex")
}, Effect.orElseSucceed(() => undefined))
