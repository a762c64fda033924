/** How a cap follows from what a person expects, on integers only. */

/** The default headroom: expected total × 1.10. */
export const defaultHeadroomPercent = 110

/** `floor(expected × headroom / 100)` on integers. */
export const capOf = (expectedMinor: bigint, headroomPercent: number): bigint =>
  expectedMinor * BigInt(headroomPercent) / 100n

/** A figure for an error message: exact up to 2^53 - 1, and that number for anything larger. */
export const safeFigure = (minor: bigint): number =>
  Number(minor > BigInt(Number.MAX_SAFE_INTEGER) ? BigInt(Number.MAX_SAFE_INTEGER) : minor)
