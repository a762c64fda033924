/**
 * `pnpm test:long` goes through every matrix whole. The short run takes a part that says most for its time: tests of one
 * process on PostgreSQL (the suites of the stores themselves run on both databases always), real processes on both in turns.
 */
import * as TestDatabase from "@purser/postgres/TestDatabase"

export const isLong = process.env["PURSER_TEST_LONG"] !== undefined

/** Databases of this run for tests of one process. */
export const databases = isLong ? TestDatabase.layers : TestDatabase.layers.filter(([name]) => name === "postgres")

/** Of the places of a matrix with two columns, those that belong to this run. */
export const ofThisRun = <A>(places: ReadonlyArray<A>, column: number): ReadonlyArray<A> =>
  isLong ? places : places.filter((_, index) => (index + column) % 2 === 0)
