/** Whether a worker lives, by the workers' book; and of a run, whether anybody works on it. */
import { commandDefinition, isRunOver, type RunRecord } from "./RunRegistry.ts"
import type { WorkerLine } from "./WorkerBook.ts"

/** `unknown`: it holds charges and never introduced itself. */
export type WorkerLife = "beating" | "silent" | "stopped" | "unknown"

/** Three beats and a little more. */
const silentAfterMs = 20_000

const of = ({ beatAtMs, stoppedAtMs }: WorkerLine, atMs: number): WorkerLife =>
  stoppedAtMs !== null ? "stopped" : beatAtMs === null ? "unknown" : atMs - beatAtMs > silentAfterMs ? "silent" : "beating"

const isRunner = ({ serves }: WorkerLine) => serves?.startsWith("runs,") === true

/** The workers' book as it was read. */
interface BookRead {
  readonly workers: ReadonlyArray<WorkerLine>
  readonly atMs: number
}

const runners = ({ atMs, workers }: BookRead): ReadonlyArray<WorkerLine> => workers.filter((line) => isRunner(line) && of(line, atMs) === "beating")

/** What the book tells of workers and runs. */
export const WorkerLife = {
  /** How a worker lives, at a time on the store's clock. */
  of,

  /** The runners that live. */
  runners,

  /** What the state of a run of runners does not tell: that none of them is there. Those of a program of one's own may not be in the book. */
  abandoned: (record: RunRecord, book: BookRead): string | null => {
    if (isRunOver(record.state) || record.definition === commandDefinition) return null
    // Whoever is there takes the runs of those that are not within seconds.
    if (runners(book).length > 0) return null
    const then = record.state === "canceling" ? "it is given up" : "it goes on where it stood"
    if (record.runner === null) return "no runner is heard of: it waits until one is started (purser runner)"
    const last = book.workers.find((line) => isRunner(line) && line.worker === record.runner)
    if (last === undefined) return `its runner, ${record.runner}, is not in the workers' book: if that is no program of your own, ${then} when a runner is started (purser runner)`
    return `no runner answers: ${record.runner} was last heard of at ${new Date(last.beatAtMs ?? 0).toISOString().slice(0, 19)}Z; ${then} when one is started (purser runner)`
  }
} as const
