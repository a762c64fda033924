/** Kept equal to the package's version by a test. */
export const version = "0.1.0"
