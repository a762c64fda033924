/**
 * What waits for a person, on PostgreSQL (or PGlite). Conflicts of files are noted when a run is planned, by its own transaction;
 * those of requests by whoever serves them, soon after and in bounded number.
 */
import { Attention, ChargeKey, ConflictSink, type RequestConflict, type RunConflict } from "@purser/core"
import { Effect, Layer, Metric, Schema } from "effect"
import { SqlClient } from "effect/sql"
import * as Sql from "./internal/attentionSql.ts"
import { lineOf, LineRow } from "./internal/chargeLine.ts"
import { keepSoon } from "./internal/keepSoon.ts"
import { bigints, double, integer, text, texts } from "./internal/params.ts"
import { asker, sender } from "./internal/storeQuery.ts"
import { PostgresMetrics } from "./PostgresMetrics.ts"

/** Sweepers and other workers take up what nobody holds within seconds: what waits for so long needs a look. */
const graceMs = 60_000

/** Conflicting requests that are kept at the most; equal ones are one. */
const requestsMax = 10_000

const NullText = Schema.NullOr(Schema.String)
const CountsRow = Schema.Struct({
  unresolved: Schema.Int, quarantined: Schema.Int, conflicts: Schema.Int, dead_letters: Schema.Int, unknown_objects: Schema.Int
})
const UnresolvedRow = Schema.Struct({ ...LineRow.fields, since_ms: Schema.Finite, worker: NullText, last_detail: NullText })
const ConflictRow = Schema.Struct({
  ...LineRow.fields,
  run_id: Schema.String,
  line: Schema.Int,
  source: Schema.String,
  seen_at_ms: Schema.Finite,
  times: Schema.Int,
  last_at_ms: Schema.Finite,
  principal: NullText,
  file_amount_minor: Schema.BigInt,
  file_currency: Schema.String,
  file_stripe_customer_id: Schema.String,
  file_payment_method: NullText,
  kept_payment_method: NullText,
  resolved_at_ms: Schema.NullOr(Schema.Finite)
})
const KeyRow = Schema.Struct({ charge_key: ChargeKey })

const conflictOf = (row: typeof ConflictRow.Type): RunConflict => ({
  runId: row.run_id,
  line: row.line,
  source: row.source,
  seenAtMs: row.seen_at_ms,
  times: row.times,
  lastAtMs: row.last_at_ms,
  principal: row.principal,
  amountMinor: Number(row.file_amount_minor),
  currency: row.file_currency,
  stripeCustomerId: row.file_stripe_customer_id,
  paymentMethod: row.file_payment_method,
  keptPaymentMethod: row.kept_payment_method,
  resolvedAtMs: row.resolved_at_ms,
  charge: lineOf(row)
})

const make = Effect.gen(function*() {
  const ask = asker(yield* SqlClient.SqlClient)
  const moved = (operation: string, sql: string, params: ReadonlyArray<unknown>) =>
    Effect.map(ask(operation, sql, params, KeyRow), (rows) => rows.length > 0)
  return Attention.of({
    counts: (most) =>
      Effect.map(ask("count what waits", Sql.counts, [integer(most), double(graceMs)], CountsRow), ([row]) => ({
        unresolved: row!.unresolved,
        quarantined: row!.quarantined,
        conflicts: row!.conflicts,
        deadLetters: row!.dead_letters,
        unknownObjects: row!.unknown_objects
      })),
    unresolved: (grace, limit) =>
      Effect.map(ask("list unresolved charges", Sql.unresolved, [double(grace), integer(limit)], UnresolvedRow), (rows) =>
        rows.map((row) => ({ ...lineOf(row), sinceMs: row.since_ms, worker: row.worker, lastDetail: row.last_detail }))),
    quarantined: (afterKey, limit) =>
      Effect.map(ask("list quarantined charges", Sql.quarantined, [text(afterKey), integer(limit)], LineRow), (rows) => rows.map(lineOf)),
    conflicts: (after, limit) =>
      Effect.map(
        ask("list conflicts", Sql.conflicts, [text(after?.runId ?? ""), integer(after?.line ?? 0), integer(limit)], ConflictRow),
        (rows) => rows.map(conflictOf)
      ),
    conflictsOf: (chargeKey) =>
      Effect.map(ask("list conflicts of a charge", Sql.conflictsOf, [text(chargeKey)], ConflictRow), (rows) => rows.map(conflictOf)),
    keepCharge: ({ actor, line, reason, runId }) =>
      moved("drop a conflict", Sql.keepCharge, [text(runId), integer(line), text(actor), text(reason)]),
    endQuarantine: (chargeKey, { actor, reason }) =>
      moved("end a quarantine", Sql.endQuarantine, [text(chargeKey), text(actor), text(reason)]),
    hasten: (chargeKey, { actor, reason }) =>
      moved("hasten a charge", Sql.hasten, [text(chargeKey), text(actor), text(reason)])
  })
})

const makeSink = Effect.gen(function*() {
  const send = sender(yield* SqlClient.SqlClient)
  const dropped = (count: number) => Metric.update(PostgresMetrics.conflictsDropped, count)
  return yield* keepSoon({
    waitingMax: 1000,
    batchMax: 200,
    dropped,
    write: (batch: ReadonlyArray<RequestConflict>) =>
      Effect.andThen(
        send("forget old conflicts", Sql.forgetConflicts, []),
        send("note conflicts", Sql.noteConflicts, [
          texts(batch.map(({ chargeKey }) => chargeKey)),
          bigints(batch.map(({ amountMinor }) => amountMinor)),
          texts(batch.map(({ currency }) => currency)),
          texts(batch.map(({ stripeCustomerId }) => stripeCustomerId)),
          texts(batch.map(({ paymentMethod }) => paymentMethod)),
          texts(batch.map(({ principal }) => principal)),
          integer(requestsMax)
        ])
      ).pipe(Effect.catch((error) => Effect.andThen(dropped(batch.length), Effect.logError(`${batch.length} conflicts could not be kept`, error.message))))
  })
})

/** The layers of what waits. */
export const PgAttention: {
  /** On the tables of `Migrations`. */
  readonly layer: Layer.Layer<Attention, never, SqlClient.SqlClient>
  /** Makes workers that are built on top keep the requests that say other terms. */
  readonly layerSink: Layer.Layer<never, never, SqlClient.SqlClient>
} = { layer: Layer.effect(Attention, make), layerSink: Layer.effect(ConflictSink, makeSink) }
