/** What a run of a file reads, in short: by it two commands at once know that they have the same. */
import { Effect, FileSystem, Stream } from "effect"
import { createHash } from "node:crypto"
import type { RunOptions } from "./planFile.ts"

/** The file's bytes and how they are read. Of what can be read once only, such as a pipe, there is none. */
export const fileDigest = Effect.fnUntraced(function*({ file, input, skipInvalid }: Pick<RunOptions, "file" | "input" | "skipInvalid">) {
  const fs = yield* FileSystem.FileSystem
  if (file === "-" || (yield* fs.stat(file)).type !== "File") return undefined
  const begun = () => createHash("sha256").update(JSON.stringify([skipInvalid, { ...input, map: [...input.map ?? []] }]))
  return (yield* Stream.runFold(fs.stream(file), begun, (hash, bytes) => hash.update(bytes))).digest("hex")
}, Effect.orElseSucceed(() => undefined))
