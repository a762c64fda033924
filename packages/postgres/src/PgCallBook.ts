/** The book of calls on PostgreSQL (or PGlite), written beside the way of a charge. */
import { CallBook, CallSink, ChargeKey, type NotedCall } from "@purser/core"
import { Clock, Config, Duration, Effect, Layer, Metric, Schema } from "effect"
import { SqlClient } from "effect/sql"
import * as Sql from "./internal/callSql.ts"
import { keepSoon } from "./internal/keepSoon.ts"
import { booleans, double, doubles, integer, integers, text, texts } from "./internal/params.ts"
import { asker, sender } from "./internal/storeQuery.ts"
import { PostgresMetrics } from "./PostgresMetrics.ts"

const waitingMax = 20_000
const batchMax = 500

/** What one hour forgets at the most. */
const forgetMax = 200_000

const CallRow = Schema.Struct({
  charge_key: ChargeKey,
  at_ms: Schema.Finite,
  operation: Schema.String,
  status: Schema.String,
  request_id: Schema.NullOr(Schema.String),
  replayed: Schema.Boolean,
  elapsed_ms: Schema.Int
})

const make = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const ask = asker(sql)
  const send = sender(sql)
  const dropped = (count: number) => Metric.update(PostgresMetrics.callsDropped, count)
  const note = yield* keepSoon({
    waitingMax,
    batchMax,
    dropped,
    write: (batch: ReadonlyArray<NotedCall>) =>
      Effect.flatMap(Clock.currentTimeMillis, (nowMs) =>
        send("keep calls", Sql.keep, [
          texts(batch.map(({ chargeKey }) => chargeKey)),
          doubles(batch.map(({ atMs }) => Math.max(0, nowMs - atMs))),
          texts(batch.map(({ operation }) => operation)),
          texts(batch.map(({ status }) => status)),
          texts(batch.map(({ requestId }) => requestId)),
          booleans(batch.map(({ replayed }) => replayed)),
          integers(batch.map(({ elapsedMs }) => Math.round(elapsedMs)))
        ])).pipe(Effect.catch((error) => Effect.andThen(dropped(batch.length), Effect.logWarning(`${batch.length} calls are not in the stories of their charges`, error.message))))
  })
  return CallBook.of({
    note,
    of: (chargeKey, limit) =>
      Effect.map(ask("list calls of a charge", Sql.of, [text(chargeKey), integer(limit)], CallRow), (rows) =>
        rows.map(({ at_ms, charge_key, elapsed_ms, request_id, ...row }) => ({ ...row, chargeKey: charge_key, atMs: at_ms, requestId: request_id, elapsedMs: elapsed_ms })))
  })
})

const layer = Layer.effect(CallBook, make)

/** Which calls are kept: all, those that were refused or not answered, or none. */
const kept = Config.Literals(["all", "failed", "none"], "PURSER_KEEP_CALLS").pipe(Config.withDefault("all" as const))

const keptFor = Config.Duration("PURSER_KEEP_CALLS_FOR").pipe(Config.withDefault(Duration.days(400)))

/** The book's layers. */
export const PgCallBook: {
  /** On the tables of `Migrations`. */
  readonly layer: Layer.Layer<CallBook, never, SqlClient.SqlClient>
  /** Makes clients of the processor that are built on top tell the book, as `PURSER_KEEP_CALLS` says. */
  readonly layerSink: Layer.Layer<never, Config.ConfigError, SqlClient.SqlClient>
} = {
  layer,
  layerSink: Layer.effect(CallSink, Effect.gen(function*() {
    const which = yield* kept
    if (which === "none") return undefined
    const forTime = Duration.toSeconds(yield* keptFor)
    const send = sender(yield* SqlClient.SqlClient)
    const { note } = yield* make
    yield* send("forget old calls", Sql.forget, [double(forTime), integer(forgetMax)]).pipe(
      Effect.catch((error) => Effect.logWarning(`old calls are not forgotten; tried again in an hour: ${error.message}`)),
      Effect.delay(Duration.hours(1)),
      Effect.forever,
      Effect.forkScoped
    )
    return which === "all" ? note : (call: NotedCall) => call.status.startsWith("2") ? Effect.void : note(call)
  }))
}
