/** How a count grew, second by second. */

/** The growth of a count. */
export interface Rates {
  /** Notes the count at a moment; looks within the same second count as one. */
  readonly note: (nowMs: number, count: number) => void
  /** Growth per second of each look, the newest last. */
  readonly series: () => ReadonlyArray<number>
  /** Growth per second over the last few looks. */
  readonly now: () => number
}

const kept = 240
const lately = 5

/** Rates of a count that is still to be noted for the first time. */
export const makeRates = (everyMs = 1000): Rates => {
  const series: Array<number> = []
  let last: { readonly atMs: number; readonly count: number } | undefined
  return {
    note: (nowMs, count) => {
      if (last === undefined) {
        last = { atMs: nowMs, count }
        return
      }
      const elapsedMs = nowMs - last.atMs
      if (elapsedMs < everyMs) return
      series.push(Math.max(0, count - last.count) / (elapsedMs / 1000))
      if (series.length > kept) series.shift()
      last = { atMs: nowMs, count }
    },
    series: () => series,
    now: () => {
      const some = series.slice(-lately)
      return some.length === 0 ? 0 : some.reduce((sum, rate) => sum + rate, 0) / some.length
    }
  }
}
