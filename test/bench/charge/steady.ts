/** What a processor answered while the calls under way were as many as may be: without the beginning of a round, and without its end. */
import type { Answered } from "./server.ts"

/** Of the time between the answer to the last call of those that were the first, and the answer after which calls are no longer as many. */
export interface Steady {
  readonly perSecond: number
  /** From a call's coming to its answer's leaving, in the middle of all. */
  readonly answerMs: number
  /** Calls that the processor had at once, in the middle. */
  readonly underWay: number
}

/** Of a round's calls in the order of their answers. */
export const steadyOf = (answered: ReadonlyArray<Answered>, calls: number): Steady => {
  const [from, to] = [calls - 1, answered.length - calls - 1]
  if (to <= from) throw new Error(`${answered.length} calls are no steady state of ${calls}`)
  const [beganMs, endedMs] = [answered[from]![1], answered[to]![1]]
  const within = answered.map(([cameMs, leftMs]) => Math.max(0, Math.min(leftMs, endedMs) - Math.max(cameMs, beganMs)))
  const tookMs = endedMs - beganMs
  return {
    perSecond: (to - from) * 1000 / tookMs,
    answerMs: answered.reduce((sum, [cameMs, leftMs]) => sum + leftMs - cameMs, 0) / answered.length,
    underWay: within.reduce((sum, ms) => sum + ms, 0) / tookMs
  }
}
