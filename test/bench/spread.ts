/** Medians with their least and greatest value, as every comparison prints them. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

export const spread = (numbers: ReadonlyArray<number>): Spread => {
  const sorted = [...numbers].sort((a, b) => a - b)
  return { median: sorted[Math.floor(sorted.length / 2)]!, min: sorted[0]!, max: sorted[sorted.length - 1]! }
}

export const shown = ({ max, median, min }: Spread, digits: number): string => `${median.toFixed(digits)} (${min.toFixed(digits)} to ${max.toFixed(digits)})`
