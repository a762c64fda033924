/**
 * Runs seen from outside, on PostgreSQL (or PGlite). How a run came to stand where it stands is read from the times that its
 * charges bear, so that the picture is whole even if nobody watched.
 */
import { type RunGroup, type RunLine, type RunSlice, RunStats } from "@purser/core"
import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { StateColumn } from "./internal/chargeRow.ts"
import { boolean, double, integer, text, texts } from "./internal/params.ts"
import * as Sql from "./internal/runStatsSql.ts"
import { asker } from "./internal/storeQuery.ts"

const RunRow = Schema.Struct({
  run_id: Schema.String,
  source: Schema.String,
  state: Schema.String,
  begun_at_ms: Schema.Finite,
  planned_at_ms: Schema.NullOr(Schema.Finite),
  finished_at_ms: Schema.NullOr(Schema.Finite),
  rows: Schema.BigInt,
  present: Schema.BigInt
})
const FoundRow = Schema.Struct({ ...RunRow.fields, now_ms: Schema.Finite })
const GroupRow = Schema.Struct({
  namespace: Schema.String,
  billing_period: Schema.String,
  currency: Schema.String,
  state: Schema.Union([StateColumn, Schema.Literals(["conflict", "quarantined", "staged"])]),
  settled_slice: Schema.NullOr(Schema.Int),
  claimed_slice: Schema.NullOr(Schema.Int),
  rows: Schema.BigInt,
  amount_minor: Schema.String,
  received_minor: Schema.String,
  settled_before: Schema.BigInt,
  settled_last_minute: Schema.BigInt,
  first_claimed_at_ms: Schema.NullOr(Schema.Finite),
  last_moved_at_ms: Schema.NullOr(Schema.Finite)
})

const runOf = (row: typeof RunRow.Type): RunLine => ({
  runId: row.run_id,
  source: row.source,
  state: row.state,
  begunAtMs: row.begun_at_ms,
  plannedAtMs: row.planned_at_ms,
  finishedAtMs: row.finished_at_ms,
  rows: Number(row.rows),
  present: Number(row.present)
})

const groupsOf = (rows: ReadonlyArray<typeof GroupRow.Type>): ReadonlyArray<RunGroup> => {
  const groups = new Map<string, RunGroup>()
  for (const row of rows) {
    const key = JSON.stringify([row.namespace, row.billing_period, row.currency, row.state])
    const known = groups.get(key)
    groups.set(key, {
      namespace: row.namespace,
      billingPeriod: row.billing_period,
      currency: row.currency,
      state: row.state,
      rows: (known?.rows ?? 0) + Number(row.rows),
      amountMinor: (known?.amountMinor ?? 0n) + BigInt(row.amount_minor),
      receivedMinor: (known?.receivedMinor ?? 0n) + BigInt(row.received_minor),
      settledBefore: (known?.settledBefore ?? 0) + Number(row.settled_before),
      settledLastMinute: (known?.settledLastMinute ?? 0) + Number(row.settled_last_minute)
    })
  }
  return [...groups.values()]
}

/** States in which a worker has a row in hand, or nobody yet. */
const isUnderWay = (state: RunGroup["state"]) => state === "staged" || state === "planned" || state === "claimed" || state === "attached"

/**
 * Sums up what was claimed and what came further by the end of each slice; `settled_slice` 0 is before the run's time. What is
 * past the worker's hands and not settled (a bank debit) has no time of its own: it counts as that from its claim on.
 */
const slicesOf = (rows: ReadonlyArray<typeof GroupRow.Type>, count: number, fromMs: number, toMs: number): ReadonlyArray<RunSlice> => {
  interface Step {
    claimed: number
    readonly past: Map<RunGroup["state"], number>
  }
  const steps = Array.from({ length: count + 1 }, (): Step => ({ claimed: 0, past: new Map() }))
  let total = 0
  for (const row of rows) {
    const n = Number(row.rows)
    total += n
    const clamp = (slice: number) => Math.min(Math.max(slice, 0), count)
    const before = row.settled_before > 0n || row.state === "conflict"
    const pastIn = (slice: number) => {
      const { past } = steps[clamp(slice)]!
      past.set(row.state, (past.get(row.state) ?? 0) + n)
    }
    // What was settled before and is under way again, by a person's act, is under way.
    if (before && !isUnderWay(row.state)) {
      steps[0]!.claimed += n
      pastIn(0)
      continue
    }
    // What was refused before anybody claimed it was never in work.
    const claimedIn = row.claimed_slice ?? row.settled_slice
    if (claimedIn !== null) steps[clamp(claimedIn)]!.claimed += n
    if (row.settled_slice !== null) pastIn(row.settled_slice)
    else if (claimedIn !== null && !isUnderWay(row.state)) pastIn(claimedIn)
  }
  let claimed = 0
  let pastAll = 0
  const past = new Map<RunGroup["state"], number>()
  return steps.map((step, index) => {
    claimed += step.claimed
    for (const [state, n] of step.past) {
      past.set(state, (past.get(state) ?? 0) + n)
      pastAll += n
    }
    return {
      atMs: fromMs + (toMs - fromMs) * index / count,
      waiting: total - claimed,
      inWork: claimed - pastAll,
      past: Object.fromEntries(past)
    }
  })
}

const RunOfChargeRow = Schema.Struct({
  run_id: Schema.String,
  line: Schema.Int,
  source: Schema.String,
  name: Schema.NullOr(Schema.String),
  actor: Schema.NullOr(Schema.String),
  begun_at_ms: Schema.Finite,
  planned_at_ms: Schema.NullOr(Schema.Finite)
})

const make = Effect.gen(function*() {
  const ask = asker(yield* SqlClient.SqlClient)
  return RunStats.of({
    list: (before, limit, only) =>
      Effect.map(ask("list runs", Sql.list, [double(before), integer(limit), boolean(only !== undefined), texts(only ?? [])], RunRow), (rows) => rows.map(runOf)),
    runsOf: (chargeKey, limit) =>
      Effect.map(ask("list runs of a charge", Sql.runsOf, [text(chargeKey), integer(limit)], RunOfChargeRow), (rows) =>
        rows.map(({ begun_at_ms, planned_at_ms, run_id, ...row }) => ({ ...row, runId: run_id, begunAtMs: begun_at_ms, plannedAtMs: planned_at_ms }))),
    view: Effect.fn("RunStats.view")(function*(runId, slices, sinceMs) {
      const [found] = yield* ask("find run", Sql.find, [text(runId)], FoundRow)
      if (found === undefined) return undefined
      const run = runOf(found)
      const fromMs = run.plannedAtMs ?? run.begunAtMs
      // An empty span has no slices.
      const toMs = Math.max(run.finishedAtMs ?? found.now_ms, fromMs + 1)
      const rows = yield* ask("view run", Sql.groups, [text(runId), double(fromMs), double(toMs), integer(slices), double(sinceMs ?? 0)], GroupRow)
      const times = (of: (row: typeof GroupRow.Type) => number | null) => rows.flatMap((row) => of(row) ?? [])
      const claims = times((row) => row.first_claimed_at_ms)
      const moves = times((row) => row.last_moved_at_ms)
      return {
        run,
        groups: groupsOf(rows),
        slices: slicesOf(rows, slices, fromMs, toMs),
        firstClaimedAtMs: claims.length === 0 ? null : Math.min(...claims),
        lastMovedAtMs: moves.length === 0 ? null : Math.max(...moves),
        atMs: found.now_ms
      }
    })
  })
})

/** The statistics' layer. */
export const PgRunStats: {
  /** Over the tables of `PgRunLedger`. */
  readonly layer: Layer.Layer<RunStats, never, SqlClient.SqlClient>
} = { layer: Layer.effect(RunStats, make) }
