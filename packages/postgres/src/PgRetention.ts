/**
 * What may be forgotten by age: executions of the workflow engine that are over, runs whose charges are all settled with their
 * rows and trail, dunning cases that ended, and webhook events that were dealt with. It counts by default, and deletes only when it is told to.
 *
 * It never touches a charge, its trail, its key, a cap, or anything that is not over: whatever it deletes, no charge could be made
 * twice because of it.
 */
import type { LedgerError } from "@purser/core"
import { Clock, Context, Duration, Effect, Layer, Schema } from "effect"
import { MachineId, Snowflake } from "effect/cluster"
import { SqlClient } from "effect/sql"
import { bigint, boolean, double, integer } from "./internal/params.ts"
import * as Sql from "./internal/retentionSql.ts"
import { asker } from "./internal/storeQuery.ts"

/** What the tables of the workflow engine begin with. */
export const engineTables = Sql.engineTables

/** How old things have to be. */
export interface RetentionAges {
  /** Since an execution of the engine ended. */
  readonly engine: Duration.Duration
  /** Since a run ended. */
  readonly runs: Duration.Duration
  /** Since a dunning case ended. */
  readonly dunning: Duration.Duration
  /** Since a webhook event came. */
  readonly webhooks: Duration.Duration
}

/** How many of each were deleted, or would be. */
export interface RetentionReport {
  readonly executions: number
  /** Messages and replies of the engine. */
  readonly engineRows: number
  readonly runs: number
  readonly runRows: number
  readonly dunningCases: number
  readonly webhookEvents: number
}

/** Things that one statement deletes; a run has many rows. */
const batch = 500
const runsBatch = 5

const Counts = Schema.Struct({ things: Schema.BigInt, rows: Schema.BigInt })
const Present = Schema.Struct({ present: Schema.Boolean })

const make = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const ask = asker(sql)

  /** One statement after another until one finds fewer than it may; a count is one statement without a bound. */
  const all = Effect.fnUntraced(function*(operation: string, statement: string, before: unknown, apply: boolean, atOnce = batch) {
    let things = 0
    let rows = 0
    const limit = apply ? atOnce : 2 ** 31 - 1
    for (;;) {
      const [counts] = yield* ask(operation, statement, [before, integer(limit), boolean(apply)], Counts)
      things += Number(counts?.things ?? 0n)
      rows += Number(counts?.rows ?? 0n)
      if (!apply || Number(counts?.things ?? 0n) < limit) return { things, rows }
    }
  })

  const prune = Effect.fnUntraced(function*(ages: RetentionAges, apply: boolean): Effect.fn.Return<RetentionReport, LedgerError> {
    const nowMs = yield* Clock.currentTimeMillis
    // The engine's ids hold the time at which they were made, by the clocks of its runners.
    const endedMs = Math.max(Snowflake.constEpochMillis, nowMs - Duration.toMillis(ages.engine))
    const before = bigint(Snowflake.make({ machineId: MachineId.make(0), sequence: 0, timestamp: endedMs }))
    const [engine] = yield* ask("find the engine's tables", Sql.hasEngine, [], Present)
    const executions = engine?.present === true ? yield* all("prune executions", Sql.pruneExecutions, before, apply) : { things: 0, rows: 0 }
    const firings = engine?.present === true ? yield* all("prune firings", Sql.pruneFirings, before, apply) : { things: 0, rows: 0 }
    const runs = yield* all("prune runs", Sql.pruneRuns, double(Duration.toSeconds(ages.runs)), apply, runsBatch)
    const dunning = yield* all("prune dunning cases", Sql.pruneDunning, double(Duration.toSeconds(ages.dunning)), apply)
    const webhooks = yield* all("prune webhook events", Sql.pruneWebhooks, double(Duration.toSeconds(ages.webhooks)), apply)
    return {
      executions: executions.things,
      engineRows: executions.rows + firings.rows,
      runs: runs.things,
      runRows: runs.rows,
      dunningCases: dunning.things,
      webhookEvents: webhooks.things
    }
  })

  return PgRetention.of({
    count: (ages) => prune(ages, false),
    prune: (ages) => prune(ages, true)
  })
})

/** Retention on PostgreSQL (or PGlite). */
export class PgRetention extends Context.Service<PgRetention, {
  /** What would be deleted. */
  readonly count: (ages: RetentionAges) => Effect.Effect<RetentionReport, LedgerError>
  /** Deletes it, a bounded number at a time. */
  readonly prune: (ages: RetentionAges) => Effect.Effect<RetentionReport, LedgerError>
}>()("@purser/postgres/PgRetention") {
  /** On the tables of `Migrations`, and on the engine's where there are any. */
  static readonly layer: Layer.Layer<PgRetention, never, SqlClient.SqlClient> = Layer.effect(PgRetention, make)
}
