/** What waits for a person, on PostgreSQL (or PGlite). Conflicts are noted when a run is planned, by its own transaction. */
import { Attention, ChargeKey, type RunConflict } from "@purser/core"
import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import * as Sql from "./internal/attentionSql.ts"
import { lineOf, LineRow } from "./internal/chargeLine.ts"
import { double, integer, text } from "./internal/params.ts"
import { asker } from "./internal/storeQuery.ts"

/** Sweepers and other workers take up what nobody holds within seconds: what waits for so long needs a look. */
const graceMs = 60_000

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
      moved("end a quarantine", Sql.endQuarantine, [text(chargeKey), text(actor), text(reason)])
  })
})

/** The layer of what waits. */
export const PgAttention: {
  /** On the tables of `Migrations`. */
  readonly layer: Layer.Layer<Attention, never, SqlClient.SqlClient>
} = { layer: Layer.effect(Attention, make) }
