/** How a count grew, second by second. */
import { RunPace } from "@purser/core"

/** The growth of a count. */
export interface Rates {
  /** Notes the count at a moment; looks within the same second count as one. `isHeld`: nothing can grow, and what follows is of a time of its own. */
  readonly note: (nowMs: number, count: number, isHeld?: boolean) => void
  /** Growth per second of each look, the newest last. */
  readonly series: () => ReadonlyArray<number>
  /** Growth per second over the last minute, or since there was something to note where that is less; as the console says it. */
  readonly now: () => number
}

const kept = 240

interface Look {
  readonly atMs: number
  readonly count: number
}

/** Rates of a count that is still to be noted for the first time. */
export const makeRates = (everyMs = 1000): Rates => {
  const series: Array<number> = []
  let last: Look | undefined
  let looks: Array<Look> = []
  return {
    note: (nowMs, count, isHeld = false) => {
      const look = { atMs: nowMs, count }
      if (last === undefined) {
        last = look
        looks = [look]
        return
      }
      const elapsedMs = nowMs - last.atMs
      if (elapsedMs < everyMs) return
      series.push(Math.max(0, count - last.count) / (elapsedMs / 1000))
      if (series.length > kept) series.shift()
      last = look
      // The first one is of the moment from which on it is counted: the last that is a minute old, however seldom one looks.
      const from = looks.findLastIndex(({ atMs }) => atMs <= nowMs - RunPace.windowMs)
      looks = isHeld ? [look] : [...looks.slice(Math.max(0, from)), look]
    },
    series: () => series,
    now: () => {
      const [first] = looks
      return first === undefined || last === undefined ? 0 : RunPace.perSecond(last.count - first.count, last.atMs - first.atMs)
    }
  }
}
