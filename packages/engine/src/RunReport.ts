/** What a run was told about its dispatch, and what it tells at its end. Both are kept as JSON. */
import { Currency, type RunStateTotal } from "@purser/core"
import { Effect, Schema } from "effect"

const withDefault = <A>(schema: Schema.Codec<A, A>, value: A) => schema.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)))

/** A total that a person expects. */
export const ExpectedScope = Schema.Struct({
  namespace: withDefault(Schema.String, "zmq-billing"),
  billingPeriod: Schema.String,
  currency: Currency,
  expectedMinor: Schema.BigIntFromString
})

/** How a run is dispatched and closed. */
export const RunOptions = Schema.Struct({
  /** Requests in flight. */
  concurrency: withDefault(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 10_000 })), 128),
  /** With `fits`, rows that do not fit under the cap are refused one by one; else the run is. */
  overCap: withDefault(Schema.Literals(["refuse", "fits"]), "refuse"),
  /** The cap is the expected total times this many hundredths. */
  headroomPercent: withDefault(Schema.Int.check(Schema.isBetween({ minimum: 100, maximum: 200 })), 110),
  /** Totals by period and currency; without any, a cap that is open stays, and else the rows' own total is expected. */
  expected: Schema.Array(ExpectedScope).pipe(Schema.withDecodingDefaultKey(Effect.succeed([]))),
  /** Periods that are billed though they are not over. */
  allowPeriods: withDefault(Schema.Array(Schema.String), []),
  /** Compares the periods with the processor at the end. */
  reconcile: withDefault(Schema.Boolean, true),
  /** Repairs what that comparison finds, as `purser reconcile` does; else it is told alone. */
  repair: withDefault(Schema.Boolean, true),
  /** Closes the caps of the periods when every row is settled. */
  closePeriod: withDefault(Schema.Boolean, false)
})
export type RunOptions = typeof RunOptions.Type

/** The end of a run's round. */
export const RunReport = Schema.Struct({
  runId: Schema.String,
  name: Schema.String,
  round: Schema.Int,
  state: Schema.Literals(["finished", "canceled", "failed"]),
  /** Rows of the whole run, and those of them that are still to be charged. */
  rows: Schema.Int,
  open: Schema.Int,
  /** Differences that reconciliation left; null where it did not run. */
  differences: Schema.NullOr(Schema.Int),
  /** What a person should know: a stage that failed after the charge, or why the run failed. */
  notes: Schema.Array(Schema.String)
})
export type RunReport = typeof RunReport.Type

/** Rows that a summary counts. */
export const countRows = (summary: ReadonlyArray<RunStateTotal>): number => summary.reduce((sum, { rows }) => sum + rows, 0)
