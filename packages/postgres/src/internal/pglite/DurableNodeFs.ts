/**
 * PGlite's file system on a real folder, with an fsync that reaches the disk.
 *
 * PGlite starts PostgreSQL with fsync off, and the file system it uses has no fsync operation at all: a row that was
 * acknowledged would survive the death of the process, but not of the machine.
 */
import { PGlite } from "@electric-sql/pglite"
import { NodeFS } from "@electric-sql/pglite/nodefs"
import * as Fs from "node:fs"

type Init = NodeFS["init"]
type Module = Parameters<NonNullable<NonNullable<Parameters<Init>[1]["preRun"]>[number]>>[0]

/** The part of Emscripten's node file system that has to learn fsync; its types do not name it. */
interface StreamOperations {
  fsync?: (stream: { readonly nfd?: number }) => number
}

const teachFsync = (module: Module): void => {
  const operations = (module as unknown as { readonly NODEFS: { readonly stream_ops: StreamOperations } }).NODEFS.stream_ops
  operations.fsync = (stream) => {
    if (stream.nfd !== undefined) Fs.fsyncSync(stream.nfd)
    return 0
  }
}

export class DurableNodeFs extends NodeFS {
  override init(...[pg, options]: Parameters<Init>): ReturnType<Init> {
    return super.init(pg, options).then((result) => {
      const { emscriptenOpts } = result
      return { ...result, emscriptenOpts: { ...emscriptenOpts, preRun: [...(emscriptenOpts.preRun ?? []), teachFsync] } }
    })
  }
}

/**
 * Start parameters. A quarter of the usual shared buffers: all of them are written when the database starts, and what does not fit is in the
 * system's cache. With fsync, since the default method, fdatasync, does nothing in this build, another one.
 */
export const startParams = ({ fsync }: { readonly fsync: boolean }): Array<string> => [
  ...PGlite.defaultStartParams.filter((parameter) => !fsync || parameter !== "-F"),
  ...["shared_buffers=32MB", ...(fsync ? ["fsync=on", "wal_sync_method=fsync"] : [])].flatMap((setting) => ["-c", setting])
]
