/** Whether a worker lives, by the workers' book; and of a run, whether anybody works on it. */
import { commandDefinition, isRunOver, type RunRecord } from "./RunRegistry.ts"
import type { WorkerLine } from "./WorkerBook.ts"

/** `unknown`: it holds charges and never introduced itself. */
export type WorkerLife = "beating" | "silent" | "stopped" | "unknown"

/** Three beats and a little more. */
const silentAfterMs = 20_000

const of = ({ beatAtMs, stoppedAtMs }: WorkerLine, atMs: number): WorkerLife =>
  stoppedAtMs !== null ? "stopped" : beatAtMs === null ? "unknown" : atMs - beatAtMs > silentAfterMs ? "silent" : "beating"

/** Who may send what a run has planned: a worker at its socket, a runner with workers of its own, the run's own command. */
const isServer = ({ runner }: RunRecord, { inFlight, serves, worker }: WorkerLine): boolean =>
  serves === null ? inFlight > 0 : serves.startsWith("requests ") || /^runs, [1-9]/.test(serves) || worker === runner && !serves.endsWith(", 0 workers")
const heardAt = ({ beatAtMs }: WorkerLine) => `${new Date(beatAtMs ?? 0).toISOString().slice(0, 19)}Z`
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
    return `no runner answers: ${record.runner} was last heard of at ${heardAt(last)}; ${then} when one is started (purser runner)`
  },

  /**
   * Of a run that whoever runs it has in hand and of which nothing moves: that no worker is there which could send its rows. A run of a program of
   * one's own is none of the book's: nothing is said of it.
   */
  unserved: (record: RunRecord, { atMs, workers }: BookRead): string | null => {
    const isAlive = (line: WorkerLine) => of(line, atMs) === "beating" || line.serves === null
    if (record.state !== "running" || !workers.some((line) => line.worker === record.runner && isAlive(line))) return null
    if (workers.some((line) => isAlive(line) && isServer(record, line))) return null
    // One that ended by itself is missed less than one that is silent.
    const [last] = workers.filter((line) => isServer(record, line)).toSorted((a, b) => Number(a.stoppedAtMs !== null) - Number(b.stoppedAtMs !== null) || (b.beatAtMs ?? 0) - (a.beatAtMs ?? 0))
    const then = "what is left is sent when one is started (purser worker)"
    return last === undefined ? `no worker is heard of: ${then}` : `no worker answers: ${last.worker} was last heard of at ${heardAt(last)}; ${then}`
  }
} as const
