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

/** The value below which this share of the numbers lies. */
export const quantile = (numbers: ReadonlyArray<number>, share: number): number => {
  const sorted = [...numbers].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!
}

/** As many digits as tell something: 8012, 512, 3.27, 0.86. */
export const figure = (value: number): string => {
  if (!Number.isFinite(value)) return "–"
  const size = Math.abs(value)
  return size >= 100 ? Math.round(value).toLocaleString("en-GB") : value.toFixed(size >= 10 ? 1 : 2)
}

/** What one job costs, often a small part of one: three digits that tell something, 1,327, 67.3, 0.0267. */
export const costFigure = (value: number): string => {
  const size = Math.abs(value)
  return size === 0 ? "0" : size < 100 ? value.toPrecision(3) : figure(value)
}

export const shown = ({ max, median, min }: Spread): string => `${figure(median)} (${figure(min)}–${figure(max)})`
