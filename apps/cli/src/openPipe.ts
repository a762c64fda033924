/**
 * One end of a pipe that stands in the file system. It is opened without waiting for the other end: who waits in `open` waits in a thread that
 * nothing stops, and the process would not end before it.
 */
import { Effect, PlatformError, Schedule, type Scope } from "effect"
import { close, constants, open } from "node:fs"
import { Socket } from "node:net"

/** How often it is tried whether somebody reads by now. */
const readerEvery = "100 millis"

const failed = (path: string, method: string, { code, message }: NodeJS.ErrnoException) =>
  PlatformError.systemError({
    _tag: code === "EACCES" || code === "EPERM" ? "PermissionDenied" : code === "ENXIO" ? "Busy" : code === "ENOENT" ? "NotFound" : "Unknown",
    module: "Pipe", method, pathOrDescriptor: path, description: message
  })

const opened = (path: string, flags: number) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly fd: number; socket: Socket | undefined }, PlatformError.PlatformError>((resume) =>
      open(path, flags | constants.O_NONBLOCK, (error, fd) => resume(error === null ? Effect.succeed({ fd, socket: undefined }) : Effect.fail(failed(path, "open", error))))),
    ({ fd, socket }) => Effect.sync(() => socket === undefined ? close(fd) : socket.destroy())
  ).pipe(Effect.map((handle) => {
    handle.socket = new Socket({ fd: handle.fd, readable: flags === constants.O_RDONLY, writable: flags === constants.O_WRONLY })
    // Whoever reads or writes hears of it.
    return handle.socket.on("error", () => undefined)
  }))

/** The end that is read from. Its end is when everybody who has written has left. */
export const openToRead = (path: string): Effect.Effect<Socket, PlatformError.PlatformError, Scope.Scope> => opened(path, constants.O_RDONLY)

/** The end that is written to, once somebody reads; `onWait` is run when nobody does yet. */
export const openToWrite = Effect.fnUntraced(function*(path: string, onWait: Effect.Effect<void>) {
  const nobodyReads = ({ reason }: PlatformError.PlatformError) => reason._tag === "Busy"
  const once = opened(path, constants.O_WRONLY)
  const socket = yield* Effect.catchIf(once, nobodyReads, () =>
    Effect.andThen(onWait, Effect.retry(once, { while: nobodyReads, schedule: Schedule.spaced(readerEvery) })))
  const told = (act: (done: (error?: Error | null) => void) => void) =>
    Effect.callback<void, PlatformError.PlatformError>((resume) =>
      act((error) => resume(error === undefined || error === null ? Effect.void : Effect.fail(failed(path, "write", error)))))
  return {
    write: (bytes: Uint8Array) => told((done) => socket.write(bytes, done)),
    end: told((done) => socket.end(done))
  }
})
