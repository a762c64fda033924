/** The inbox of webhook events on PostgreSQL (or PGlite): an event is kept when `receive` answers, and each is taken by one process. */
import { type InboxRecord, type WebhookEvent, WebhookInbox } from "@purser/core"
import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { double, integer, text } from "./internal/params.ts"
import { asker, sender } from "./internal/storeQuery.ts"
import * as Sql from "./internal/watchSql.ts"

const NullText = Schema.NullOr(Schema.String)
const Verdict = Schema.NullOr(Schema.Literals(["settled", "unchanged", "in_work", "noted", "unknown_object", "quarantined", "ignored"]))

const eventFields = {
  event_id: Schema.String,
  type: Schema.String,
  created_ms: Schema.Finite,
  account: NullText,
  subject: Schema.Literals(["payment", "charge", "refund", "dispute", "customer", "other"]),
  object_id: NullText
}
const EventRow = Schema.Struct(eventFields)
const ReceiveRow = Schema.Struct({ deliveries: Schema.Int })
const DueRow = Schema.Struct({ ...eventFields, tries: Schema.Int, received_ms: Schema.Finite })
const RecordRow = Schema.Struct({
  ...eventFields,
  deliveries: Schema.Int,
  tries: Schema.Int,
  received_ms: Schema.Finite,
  verdict: Verdict,
  detail: NullText
})
const TotalRow = Schema.Struct({ verdict: Verdict, events: Schema.BigInt })
const IdRow = Schema.Struct({ event_id: Schema.String })

const eventOf = (row: typeof EventRow.Type): WebhookEvent => ({
  id: row.event_id,
  type: row.type,
  createdMs: row.created_ms,
  account: row.account,
  subject: row.subject,
  objectId: row.object_id
})

const make = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const ask = asker(sql)
  const send = sender(sql)
  return WebhookInbox.of({
    receive: (event) =>
      Effect.map(
        ask("receive event", Sql.receive, [
          text(event.id), text(event.type), double(event.createdMs), text(event.account), text(event.subject), text(event.objectId)
        ], ReceiveRow),
        ([row]) => row?.deliveries === 1
      ),
    take: (limit, holdMs) =>
      Effect.map(ask("take events", Sql.take, [integer(limit), double(holdMs)], DueRow), (rows) =>
        rows.toSorted((a, b) => a.received_ms - b.received_ms).map((row) => ({ event: eventOf(row), tries: row.tries }))),
    finish: (eventId, verdict, detail) => send("finish event", Sql.finish, [text(eventId), text(verdict), text(detail)]),
    postpone: (eventId, afterMs, detail) => send("postpone event", Sql.postpone, [text(eventId), double(afterMs), text(detail)]),
    recent: (limit) =>
      Effect.map(ask("list events", Sql.recent, [integer(limit)], RecordRow), (rows) =>
        rows.map((row): InboxRecord => ({
          event: eventOf(row),
          deliveries: row.deliveries,
          receivedMs: row.received_ms,
          tries: row.tries,
          verdict: row.verdict,
          detail: row.detail
        }))),
    totals: Effect.map(ask("count events", Sql.totals, [], TotalRow), (rows) =>
      rows.map(({ events, verdict }) => ({ verdict, events: Number(events) }))),
    purge: (olderThanMs, limit) =>
      Effect.map(ask("purge events", Sql.purge, [double(olderThanMs), integer(limit)], IdRow), (rows) => rows.length)
  })
})

/** The inbox's layer. */
export const PgWebhookInbox: { readonly layer: Layer.Layer<WebhookInbox, never, SqlClient.SqlClient> } = {
  layer: Layer.effect(WebhookInbox, make)
}
