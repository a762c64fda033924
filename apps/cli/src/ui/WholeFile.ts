/**
 * A file that is taken for whole by whoever finds it: written beside its place under a name that nobody has, and put there once it is finished.
 * A link stays, and what it leads to is replaced. Pipes and devices have no place to be put into: they are written to as they stand.
 *
 * It touches no other file than the one it was told and the one it has made.
 */
import { Effect, FileSystem, type PlatformError, type Scope } from "effect"
import { basename, dirname, isAbsolute, join, resolve } from "node:path"
import { type CommandFailed, refused } from "../CommandFailed.ts"
import { openToWrite } from "../openPipe.ts"
import { note } from "./Output.ts"

/** Takes text; `finish` puts the file in its place. A file that is not finished when its scope ends is removed. */
export interface WholeFile {
  readonly write: (text: string) => Effect.Effect<void, PlatformError.PlatformError>
  readonly finish: Effect.Effect<void, PlatformError.PlatformError>
}

/** Where the text goes in the end. */
interface Place {
  readonly path: string
  /** The file that is replaced, if there is one. */
  readonly old: FileSystem.File.Info | undefined
  readonly kind: "file" | "pipe" | "device"
}

/** As many links as Linux follows. */
const linksMax = 40
const namesMax = 1000

/** What the process has open shows there as links whose names say what it is, not where. */
const isOfHandles = (folder: string) => folder === "/dev/fd" || /^\/proc\/.*\/fd$/.test(folder)

/** The end of all links, also where nothing stands there yet; one that leads to an open handle is left as it is. */
const endOfLinks = Effect.fnUntraced(function*(path: string) {
  const fs = yield* FileSystem.FileSystem
  let name = path
  for (let links = 0; links <= linksMax; links++) {
    const given = dirname(name)
    const folder = yield* Effect.orElseSucceed(fs.realPath(given), () => resolve(given))
    name = join(folder, basename(name))
    if (isOfHandles(folder)) return { path: name, isHandle: true }
    const link = yield* Effect.orElseSucceed(fs.readLink(name), () => undefined)
    if (link === undefined) return { path: name, isHandle: false }
    // Not joined: `..` behind a link is the parent of what it leads to.
    name = isAbsolute(link) ? link : `${folder}/${link}`
  }
  return undefined
})

const placeOf = Effect.fnUntraced(function*(flag: string, path: string): Effect.fn.Return<Place, CommandFailed, FileSystem.FileSystem> {
  const fs = yield* FileSystem.FileSystem
  const no = (why: string) => refused(`--${flag} ${path} ${why}`)
  const end = yield* endOfLinks(path)
  if (end === undefined) return yield* no("cannot be written: its links lead in a circle")
  const old = yield* Effect.orElseSucceed(fs.stat(end.path), () => undefined)
  switch (old?.type) {
    case "Directory":
      return yield* no("is a folder")
    case "FIFO":
      return { path: end.path, old, kind: "pipe" }
    case "CharacterDevice":
      return { path: end.path, old, kind: "device" }
    case "File":
      if (end.isHandle) return yield* no("is a file that is open already: name the file itself")
      return { path: end.path, old, kind: "file" }
    case undefined:
      return { path: end.path, old, kind: "file" }
    default:
      return yield* no("is neither a file nor a pipe")
  }
})

const unwritten = (flag: string, path: string) => (error: PlatformError.PlatformError) => refused(`--${flag} ${path} cannot be written: ${error.message}`)

/** A file of our own beside the place. It is gone with the scope unless it was put there. */
const openBeside = Effect.fnUntraced(function*({ old, path }: Place) {
  const fs = yield* FileSystem.FileSystem
  for (let count = 1;; count++) {
    const name = `${path}.partial${count === 1 ? "" : count}`
    const opened = yield* Effect.result(fs.open(name, { flag: "wx" }))
    if (opened._tag === "Failure") {
      if (opened.failure.reason._tag !== "AlreadyExists" || count >= namesMax) return yield* opened.failure
      continue
    }
    let isThere = false
    yield* Effect.addFinalizer(() => isThere ? Effect.void : Effect.ignore(fs.remove(name)))
    // What only some may read stays so. File systems without modes have none to keep.
    if (old !== undefined) yield* Effect.ignore(fs.chmod(name, old.mode & 0o777))
    const putThere = Effect.andThen(fs.rename(name, path), Effect.sync(() => {
      isThere = true
    }))
    const file = opened.success
    return { write: (bytes: Uint8Array) => file.writeAll(bytes), finish: Effect.andThen(file.sync, Effect.uninterruptible(putThere)) }
  }
}, Effect.uninterruptible)

/** Written at its end: a device has no other place. */
const openDevice = Effect.fnUntraced(function*({ path }: Place) {
  const file = yield* (yield* FileSystem.FileSystem).open(path, { flag: "a" })
  return { write: (bytes: Uint8Array) => file.writeAll(bytes), finish: Effect.void }
})

const openPipe = Effect.fnUntraced(function*({ path }: Place) {
  const { end, write } = yield* openToWrite(path, note(`waiting until somebody reads ${path}`))
  return { write, finish: end }
})

const openers = { file: openBeside, device: openDevice, pipe: openPipe }
const opened = (flag: string, given: string, place: Place) => Effect.mapError(openers[place.kind](place), unwritten(flag, given))

/** Opens the file that a flag names. A pipe is waited for until somebody reads it. */
export const openWhole = Effect.fnUntraced(function*(flag: string, path: string): Effect.fn.Return<WholeFile, CommandFailed, FileSystem.FileSystem | Scope.Scope> {
  const { finish, write } = yield* opened(flag, path, yield* placeOf(flag, path))
  const encoder = new TextEncoder()
  return { write: (text) => write(encoder.encode(text)), finish }
})

/** Makes sure that the file that a flag names can be opened, and leaves no trace. Nobody who reads a pipe is told of it. */
export const checkWhole = Effect.fnUntraced(function*(flag: string, path: string) {
  const fs = yield* FileSystem.FileSystem
  const place = yield* placeOf(flag, path)
  if (place.kind !== "pipe") return yield* Effect.asVoid(Effect.scoped(opened(flag, path, place)))
  yield* Effect.mapError(fs.access(place.path, { writable: true }), unwritten(flag, path))
})
