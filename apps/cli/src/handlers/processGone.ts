/** Whether a process is known to be gone: one of this machine that the system does not know. Of another machine's nothing is known here. */
import type { CommandProcess } from "@purser/engine"
import { Effect } from "effect"
import { hostname } from "node:os"

/** This process. */
export const thisProcess = (): CommandProcess => ({ host: hostname(), pid: process.pid })

/** Whether the system knows no such process. */
const isUnknown = (cause: unknown) => ({ unknown: cause instanceof Error && "code" in cause && cause.code === "ESRCH" })

/** Signal 0 asks and does nothing; a process that may not be asked is there. */
export const isProcessGone = ({ host, pid }: CommandProcess): Effect.Effect<boolean> =>
  host !== hostname() ? Effect.succeed(false) : Effect.match(Effect.try({ try: () => process.kill(pid, 0), catch: isUnknown }), {
    onFailure: ({ unknown }) => unknown,
    onSuccess: () => false
  })
