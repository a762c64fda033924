/**
 * How fast a run goes, and how long the rest takes: one way of reckoning for whoever shows it. A rate is of the time that has really
 * passed: of the last minute, or since the run began or went on where that is less.
 */

/** What a rate is taken over at the most. */
const windowMs = 60_000

/** Less says more of chance than of speed. */
const leastMs = 1000

/** How many rows settle a second, of what time that is, and when the rest is done. */
export const RunPace = {
  /** The longest time that a rate is taken over. */
  windowMs,

  /** From when on is counted: what came before a beginning, or before a hold, is of another time. */
  fromMs: (nowMs: number, beginnings: ReadonlyArray<number | null | undefined>): number =>
    Math.min(nowMs, beginnings.reduce<number>((latest, atMs) => Math.max(latest, atMs ?? 0), nowMs - windowMs)),

  /** How many a second, of what settled within this time. */
  perSecond: (settled: number, elapsedMs: number): number => settled <= 0 ? 0 : settled / (Math.max(elapsedMs, leastMs) / 1000),

  /** How long this much takes at a rate; null where it does not end. */
  leftMs: (open: number, perSecond: number): number | null => open <= 0 || perSecond <= 0 ? null : open / perSecond * 1000
} as const
