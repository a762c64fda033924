/**
 * A disk that is full when a test says so: a small file system in memory, with a file that takes all room that is left. What writes
 * on it is told ENOSPC by the kernel. It can be had where Linux lets this process mount one; elsewhere there is none.
 */
import { Effect, type Scope } from "effect"
import { spawnSync } from "node:child_process"
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** A folder on a small disk. */
export interface Disk {
  readonly folder: string
  readonly fill: Effect.Effect<void>
  readonly free: Effect.Effect<void>
}

const sizeMb = 400
const chunk = Buffer.alloc(1 << 20, 1)

/** Takes all that is left, to the last kilobyte. */
const fillWith = (path: string): void => {
  const file = openSync(path, "a")
  try {
    for (let size = chunk.length; size >= 1024;) {
      try {
        if (writeSync(file, chunk, 0, size) < size) size >>= 1
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error
        size >>= 1
      }
    }
  } finally {
    closeSync(file)
  }
}

/** A disk for the scope; `undefined` where none can be had. */
export const makeDisk: Effect.Effect<Disk | undefined, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "purser-chaos-disk-"))
    const mounted = process.platform === "linux" && spawnSync("mount", ["-t", "tmpfs", "-o", `size=${sizeMb}m,mode=0700`, "tmpfs", folder], { stdio: "ignore" }).status === 0
    return { folder, mounted }
  }),
  ({ folder, mounted }) =>
    Effect.sync(() => {
      // Whoever still has a file open there keeps it; the place is free at once.
      if (mounted) spawnSync("umount", ["-l", folder], { stdio: "ignore" })
      rmSync(folder, { recursive: true, force: true })
    })
).pipe(Effect.map(({ folder, mounted }) => {
  const ballast = join(folder, "ballast")
  return mounted
    ? { folder, fill: Effect.sync(() => fillWith(ballast)), free: Effect.sync(() => rmSync(ballast, { force: true })) }
    : undefined
}))
