/** How a cap follows from what a person expects, on integers only. */

/** The default headroom: expected total × 1.10. */
export const defaultHeadroomPercent = 110

/** `floor(expected × headroom / 100)` on integers. */
export const capOf = (expectedMinor: bigint, headroomPercent: number): bigint =>
  expectedMinor * BigInt(headroomPercent) / 100n

/**
 * A share of integers in whole percent, without its sign. It is cut, so that nothing is all before it is; what is there at all is never
 * nothing.
 */
export const percentOf = (part: number | bigint, whole: number | bigint): string => {
  if (BigInt(whole) === 0n) return "–"
  const share = BigInt(part) * 100n / BigInt(whole)
  return part > 0 && share === 0n ? "< 1" : String(share)
}

/** A figure for an error message: exact up to 2^53 - 1, and that number for anything larger. */
export const safeFigure = (minor: bigint): number => Math.min(Number(minor), Number.MAX_SAFE_INTEGER)
