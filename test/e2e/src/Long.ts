/** Whether `pnpm test:long` runs: then a matrix is gone through whole, else every second field of it, on one store and on the other in turns. */
export const isLong = process.env["PURSER_TEST_LONG"] !== undefined

/** Of the places of a matrix with two columns, those that belong to this run. */
export const ofThisRun = <A>(places: ReadonlyArray<A>, column: number): ReadonlyArray<A> =>
  isLong ? places : places.filter((_, index) => (index + column) % 2 === 0)
