/** The trail of what people did, on PostgreSQL (or PGlite). */
import { OperatorTrail } from "@purser/core"
import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { bigint, integer, text } from "./internal/params.ts"
import { asker, sender } from "./internal/storeQuery.ts"
import * as Sql from "./internal/trailSql.ts"

const NullText = Schema.NullOr(Schema.String)
const ActRow = Schema.Struct({
  position: Schema.BigInt,
  at_ms: Schema.Finite,
  actor: Schema.String,
  act: Schema.String,
  subject: Schema.String,
  reason: Schema.String,
  detail: NullText
})
const CapEventRow = Schema.Struct({
  position: Schema.BigInt,
  at_ms: Schema.Finite,
  namespace: Schema.String,
  billing_period: Schema.String,
  currency: Schema.String,
  act: Schema.Literals(["opened", "raised", "closed", "reopened", "forced"]),
  expected_minor: Schema.NullOr(Schema.BigInt),
  headroom_percent: Schema.NullOr(Schema.Int),
  cap_minor: Schema.BigInt,
  charge_key: NullText,
  actor: NullText,
  reason: NullText
})
const PauseEventRow = Schema.Struct({
  position: Schema.BigInt,
  at_ms: Schema.Finite,
  cause: Schema.String,
  act: Schema.Literals(["paused", "resumed"]),
  actor: Schema.String,
  reason: Schema.String
})

const actOf = ({ at_ms, position, ...row }: typeof ActRow.Type) => ({ ...row, position: Number(position), atMs: at_ms })

const make = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const ask = asker(sql)
  const send = sender(sql)
  return OperatorTrail.of({
    note: ({ act, actor, detail, reason, subject }) =>
      send("note an act", Sql.note, [text(actor), text(act), text(subject), text(reason), text(detail)]),
    acts: (before, limit) =>
      Effect.map(ask("list acts", Sql.acts, [bigint(before), integer(limit)], ActRow), (rows) => rows.map(actOf)),
    actsOn: (subject, limit) =>
      Effect.map(ask("list acts on a subject", Sql.actsOn, [text(subject), integer(limit)], ActRow), (rows) => rows.map(actOf)),
    capEvents: (billingPeriod, limit) =>
      Effect.map(ask("list cap events", Sql.capEvents, [text(billingPeriod ?? null), integer(limit)], CapEventRow), (rows) =>
        rows.map((row) => ({
          position: Number(row.position),
          atMs: row.at_ms,
          namespace: row.namespace,
          billingPeriod: row.billing_period,
          currency: row.currency,
          act: row.act,
          expectedMinor: row.expected_minor,
          headroomPercent: row.headroom_percent,
          capMinor: row.cap_minor,
          chargeKey: row.charge_key,
          actor: row.actor,
          reason: row.reason
        }))),
    pauseEvents: (limit) =>
      Effect.map(ask("list pauses", Sql.pauseEvents, [integer(limit)], PauseEventRow), (rows) =>
        rows.map(({ at_ms, position, ...row }) => ({ ...row, position: Number(position), atMs: at_ms })))
  })
})

/** The trail's layer. */
export const PgOperatorTrail: {
  /** On the tables of `Migrations`. */
  readonly layer: Layer.Layer<OperatorTrail, never, SqlClient.SqlClient>
} = { layer: Layer.effect(OperatorTrail, make) }
