/**
 * The event log on PostgreSQL (or PGlite), beside the tables of `PgLedger`. How places are given, and why none is ever
 * stepped over, is told in the migration that makes its tables (`0008_create_feed`).
 */
import { ChargeKey, EventLog, EventLogUnavailable, FeedError, type FeedEvent, isAfter, ReplayGap } from "@purser/core"
import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { decodeRows, StateColumn } from "./internal/chargeRow.ts"
import { detailOf, retryRolledBack, type StoreFailure } from "./internal/failures.ts"
import * as Sql from "./internal/feedSql.ts"
import { integer, text } from "./internal/params.ts"

/** Places that one call of `trim` forgets at the most. */
const trimMax = 50_000n

const NullText = Schema.NullOr(Schema.String)
const HeadRow = Schema.Struct({ last: Schema.BigInt, trimmed_to: Schema.BigInt })
const AdvanceRow = Schema.Struct({ ...HeadRow.fields, more: Schema.Boolean })
const KnownRow = Schema.Struct({ ...HeadRow.fields, known: Schema.Boolean })
const EventRow = Schema.Struct({
  sequence: Schema.BigInt,
  charge_key: ChargeKey,
  seq: Schema.Int,
  at_ms: Schema.Finite,
  from_state: Schema.NullOr(StateColumn),
  to_state: StateColumn,
  worker: NullText,
  attempt: Schema.Int,
  detail: NullText,
  principal: NullText,
  namespace: Schema.String,
  customer_id: Schema.String,
  billing_period: Schema.String,
  item: NullText,
  amount_minor: Schema.BigInt,
  currency: Schema.String
})
const PageRow = Schema.Union([
  Schema.Struct({ ...EventRow.fields, page_key: ChargeKey }),
  Schema.Struct({ page_key: ChargeKey, sequence: Schema.Null })
])

const eventOf = (row: typeof EventRow.Type): FeedEvent => ({
  sequence: Number(row.sequence),
  chargeKey: row.charge_key,
  chargeSequence: row.seq,
  atMs: row.at_ms,
  from: row.from_state,
  to: row.to_state,
  worker: row.worker,
  attempt: row.attempt,
  detail: row.detail,
  principal: row.principal,
  namespace: row.namespace,
  customerId: row.customer_id,
  billingPeriod: row.billing_period,
  item: row.item,
  amountMinor: Number(row.amount_minor),
  currency: row.currency
})
const headOf = (row: typeof HeadRow.Type) => ({ sequence: Number(row.last), trimmedTo: Number(row.trimmed_to) })

const make = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const unavailable = (operation: string) => (failure: StoreFailure) =>
    new FeedError({ reason: new EventLogUnavailable({ operation, detail: detailOf(failure) }) })
  const query = <S extends Schema.Top & { readonly DecodingServices: never }>(
    operation: string,
    statement: string,
    params: ReadonlyArray<unknown>,
    schema: S
  ): Effect.Effect<ReadonlyArray<S["Type"]>, FeedError> =>
    Effect.mapError(retryRolledBack(Effect.flatMap(sql.unsafe(statement, params), decodeRows(schema))), unavailable(operation))
  const one = <S extends Schema.Top & { readonly DecodingServices: never }>(operation: string, statement: string, params: ReadonlyArray<unknown>, schema: S) =>
    Effect.map(query(operation, statement, params, schema), (rows): S["Type"] => rows[0]!)

  return EventLog.of({
    beginEpoch: (epoch) => Effect.asVoid(query("begin an epoch", Sql.beginEpoch, [text(epoch)], Schema.Unknown)),
    advance: (limit) =>
      Effect.map(one("give places", Sql.advance, [integer(limit)], AdvanceRow), (row) => ({ ...headOf(row), more: row.more })),
    head: Effect.map(one("head", Sql.head, [text(null)], KnownRow), headOf),
    read: Effect.fnUntraced(function*(cursor, limit) {
      const { epoch, sequence } = cursor
      // With a mark from the event on that stands at the place itself, so that both are seen at one moment.
      const before = cursor.event === undefined || sequence === 0 ? 0 : 1
      const found = yield* query("read", Sql.read, [BigInt(sequence - before), integer(limit + before)], EventRow)
      const events = found.map(eventOf)
      const stands = events[0]?.sequence === sequence ? events.shift() : undefined
      // After the rows, so that a trim in between is not taken for the end of the log.
      const { known: isOurs, ...ends } = yield* one("read", Sql.head, [text(epoch)], KnownRow)
      const { sequence: newest, trimmedTo } = headOf(ends)
      const known = isOurs && (stands === undefined || isAfter(cursor, stands))
      const whole = events.length === 0 ? sequence >= trimmedTo && sequence <= newest : events[0]!.sequence === sequence + 1
      if (known && whole) return events
      const why = known && sequence < trimmedTo ? "trimmed" : "other_history"
      return yield* new FeedError({ reason: new ReplayGap({ after: sequence, oldest: trimmedTo + 1, newest, why }) })
    }),
    snapshot: (at, afterKey, limit) =>
      Effect.map(query("snapshot", Sql.snapshot, [BigInt(at), text(afterKey ?? ""), integer(limit)], PageRow), (rows) => ({
        states: rows.flatMap((row) => row.sequence === null ? [] : [eventOf(row)]),
        next: rows.length < limit ? null : rows.at(-1)!.page_key
      })),
    trim: (keep) => Effect.map(one("trim", Sql.trim, [BigInt(keep), trimMax], HeadRow), headOf)
  })
})

/** The event log's layer. */
export const PgEventLog: {
  /** The log of the events of `PgLedger`, on the tables of `Migrations`. */
  readonly layer: Layer.Layer<EventLog, never, SqlClient.SqlClient>
} = { layer: Layer.effect(EventLog, make) }
