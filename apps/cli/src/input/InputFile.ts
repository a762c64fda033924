/**
 * A billing file as a stream of rows, refusals and blank rows, in file order and in bounded memory.
 *
 * It reads and checks; it sends nothing, asks nothing and remembers no row. That two rows have one identity, or that
 * a period has not begun, is for the caller to find.
 */
import { NodeStream } from "@effect/platform-node"
import { Cause, Effect, FileSystem, type PlatformError, Pull, Stdio, Stream } from "effect"
import { createReadStream } from "node:fs"
import type { Readable } from "node:stream"
import { openToRead } from "../openPipe.ts"
import { FileNotFound, InputError, type InputErrorReason, NoPermission, NotAFile, ReadFailed } from "./InputError.ts"
import { formatOf, type InputOptions } from "./InputOptions.ts"
import { makeInputReader } from "./InputReader.ts"
import type { InputEntry } from "./InputRow.ts"

/** Larger chunks were slower: their rows outlive the young generation of the garbage collector. */
const chunkBytes = 65_536

const isNonEmpty = <A>(values: ReadonlyArray<A>): values is readonly [A, ...Array<A>] => values.length > 0

const reasonOf = ({ message, reason }: PlatformError.PlatformError): InputErrorReason => {
  switch (reason._tag) {
    case "NotFound":
      return new FileNotFound()
    case "PermissionDenied":
      return new NoPermission()
    default:
      return new ReadFailed({ detail: message })
  }
}

/** Bytes in their order and from no place: pipes and terminals have none. */
const inOrder = (path: string, evaluate: () => Readable): Stream.Stream<Uint8Array, InputError> =>
  NodeStream.fromReadable<Uint8Array, InputError>({
    evaluate,
    onError: (error) => new InputError({ file: path, reason: new ReadFailed({ detail: error instanceof Error ? error.message : String(error) }) })
  })

const openFile = (path: string): Stream.Stream<Uint8Array, InputError, FileSystem.FileSystem> =>
  Stream.unwrap(Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const info = yield* fs.stat(path)
    if (info.type === "Directory") return yield* new InputError({ file: path, reason: new NotAFile() })
    const bytes: Stream.Stream<Uint8Array, InputError | PlatformError.PlatformError> = info.type === "File"
      ? fs.stream(path, { chunkSize: chunkBytes })
      : info.type === "FIFO"
      ? Stream.unwrap(Effect.map(openToRead(path), (pipe) => inOrder(path, () => pipe)))
      : inOrder(path, () => createReadStream(path, { highWaterMark: chunkBytes }))
    return bytes
  })).pipe(
    Stream.mapError((error) => error._tag === "InputError" ? error : new InputError({ file: path, reason: reasonOf(error) }))
  )

const standardInput = (path: string): Stream.Stream<Uint8Array, InputError, Stdio.Stdio> =>
  Stream.unwrap(Effect.map(Stdio.Stdio, ({ stdin }) => stdin)).pipe(
    Stream.mapError((error) => new InputError({ file: path, reason: reasonOf(error) }))
  )

/** The names of standard input. By the longer ones it cannot be opened where it is a socket, as under many programs that start others. */
const standardInputs = new Set(["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"])

/**
 * The entries of bytes that come from anywhere; `file` is the name that refusals and errors carry. Entries before a
 * failure are emitted first. One chunk of bytes makes at most one chunk of entries.
 */
const fromBytes = <R>(
  bytes: Stream.Stream<Uint8Array, InputError, R>,
  file: string,
  options: InputOptions = {}
): Stream.Stream<InputEntry, InputError, R> =>
  Stream.transformPull(bytes, (pull) =>
    Effect.sync(() => {
      const reader = makeInputReader(file, formatOf(file, options), options)
      let failure: InputErrorReason | undefined
      let ended = false

      const read: Effect.Effect<ReadonlyArray<InputEntry>, InputError> = pull.pipe(
        Effect.map((chunks) => {
          const entries: Array<InputEntry> = []
          for (const chunk of chunks) {
            const piece = reader.push(chunk)
            for (const entry of piece.entries) entries.push(entry)
            failure = piece.failure
            if (failure !== undefined) break
          }
          return entries
        }),
        Pull.catchDone(() =>
          Effect.sync(() => {
            ended = true
            const piece = reader.end()
            failure = piece.failure
            return piece.entries
          })
        )
      )

      const next: Pull.Pull<readonly [InputEntry, ...Array<InputEntry>], InputError> = Effect.suspend(() => {
        if (failure !== undefined) return Effect.fail(new InputError({ file, reason: failure }))
        if (ended) return Cause.done()
        return Effect.flatMap(read, (entries) => isNonEmpty(entries) ? Effect.succeed(entries) : next)
      })
      return next
    }))

/** The entries of a file, of a pipe, or of standard input when `path` is `-`. */
const rows = (path: string, options: InputOptions = {}): Stream.Stream<InputEntry, InputError, FileSystem.FileSystem | Stdio.Stdio> =>
  standardInputs.has(path) ? fromBytes(standardInput(path), path, options) : fromBytes(openFile(path), path, options)

/** The reader of billing files. */
export const InputFile = { rows, fromBytes } as const
