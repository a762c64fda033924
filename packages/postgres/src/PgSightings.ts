/** What was seen at the processor, on PostgreSQL (or PGlite): one row per object, overwritten by the later word about it. */
import { Sightings } from "@purser/core"
import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { MovementRow, movementOf } from "./internal/movementRow.ts"
import { bigint, double, integer, text } from "./internal/params.ts"
import { asker, sender } from "./internal/storeQuery.ts"
import * as Sql from "./internal/watchSql.ts"

const NullText = Schema.NullOr(Schema.String)

const UnknownRow = Schema.Struct({
  id: Schema.String,
  reason: Schema.Literals(["missing_here", "not_attached", "foreign", "missing_there"]),
  charge_key: NullText,
  amount_minor: Schema.NullOr(Schema.BigInt),
  currency: NullText,
  stripe_customer_id: NullText,
  status: NullText,
  detail: NullText,
  first_seen_ms: Schema.Finite,
  last_seen_ms: Schema.Finite
})
const IdRow = Schema.Struct({ id: Schema.String })

const make = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const ask = asker(sql)
  const send = sender(sql)
  return Sightings.of({
    note: (movement) =>
      send("note movement", Sql.note, [
        text(movement.id), text(movement.kind), text(movement.chargeKey), text(movement.paymentIntentId), text(movement.chargeId), bigint(movement.amountMinor),
        text(movement.currency), text(movement.status), text(movement.reason), double(movement.createdMs)
      ]),
    movements: (chargeKey) =>
      Effect.map(ask("list movements", Sql.movements, [text(chargeKey)], MovementRow), (rows) => rows.map(movementOf)),
    list: (object) =>
      send("list object", Sql.list, [
        text(object.id), text(object.reason), text(object.chargeKey), bigint(object.amountMinor), text(object.currency),
        text(object.stripeCustomerId), text(object.status), text(object.detail)
      ]),
    unlist: (id, resolution) =>
      Effect.map(ask("unlist object", Sql.unlist, [text(id), text(resolution)], IdRow), (rows) => rows.length === 1),
    unknown: (afterId, limit) =>
      Effect.map(ask("list unknown objects", Sql.unknown, [text(afterId), integer(limit)], UnknownRow), (rows) =>
        rows.map((row) => ({
          id: row.id,
          reason: row.reason,
          chargeKey: row.charge_key,
          amountMinor: row.amount_minor === null ? null : Number(row.amount_minor),
          currency: row.currency,
          stripeCustomerId: row.stripe_customer_id,
          status: row.status,
          detail: row.detail,
          firstSeenMs: row.first_seen_ms,
          lastSeenMs: row.last_seen_ms
        })))
  })
})

/** The layer of sightings. */
export const PgSightings: { readonly layer: Layer.Layer<Sightings, never, SqlClient.SqlClient> } = {
  layer: Layer.effect(Sightings, make)
}
