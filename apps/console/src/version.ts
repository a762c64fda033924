/** The version that the console tells. */

/** Kept equal to the package's by a test. */
export const version = "0.1.0"
