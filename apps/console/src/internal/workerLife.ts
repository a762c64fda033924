/** Whether a worker lives, by the workers' book; and of a run, whether anybody works on it. */
import { commandDefinition, isRunOver, type RunRecord, type WorkerLine } from "@purser/core"
import type { Worker } from "../api/Shapes.ts"

/** Three beats and a little more. */
const silentAfterMs = 20_000

/** How a worker lives. */
export const lifeOf = ({ beatAtMs, stoppedAtMs }: WorkerLine, atMs: number): Worker["life"] =>
  stoppedAtMs !== null ? "stopped" : beatAtMs === null ? "unknown" : atMs - beatAtMs > silentAfterMs ? "silent" : "beating"

/** The workers' book as it was read. */
export interface Book {
  readonly workers: ReadonlyArray<WorkerLine>
  readonly atMs: number
}

const isRunner = ({ serves }: WorkerLine) => serves?.startsWith("runs,") === true

/** What the state of a run of runners does not tell: that none of them is there. Those of a program of one's own may not be in the book. */
export const abandonedOf = (record: RunRecord | undefined, { atMs, workers }: Book): string | null => {
  if (record === undefined || isRunOver(record.state) || record.definition === commandDefinition) return null
  const runners = workers.filter(isRunner)
  // Whoever is there takes the runs of those that are not within seconds.
  if (runners.some((line) => lifeOf(line, atMs) === "beating")) return null
  const then = record.state === "canceling" ? "it is given up" : "it goes on where it stood"
  if (record.runner === null) return "no runner is heard of: it waits until one is started (purser runner)"
  const last = runners.find(({ worker }) => worker === record.runner)
  if (last === undefined) return `its runner, ${record.runner}, is not in the workers' book: if that is no program of your own, ${then} when a runner is started (purser runner)`
  return `no runner answers: ${record.runner} was last heard of at ${new Date(last.beatAtMs ?? 0).toISOString().slice(0, 19)}Z; ${then} when one is started (purser runner)`
}
