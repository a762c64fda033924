/** The workers' book on PostgreSQL (or PGlite). */
import { WorkerBook, type WorkerSelf } from "@purser/core"
import { Config, Duration, Effect, Layer, Schedule, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { integer, text } from "./internal/params.ts"
import { asker, sender } from "./internal/storeQuery.ts"
import * as Sql from "./internal/workerSql.ts"

/** Events that are looked at for a worker's speed: at the full speed of a database they span some seconds, else the minute. */
const newest = 20_000

const NullText = Schema.NullOr(Schema.String)
const NullTime = Schema.NullOr(Schema.Finite)
const BeatRow = Schema.Struct({ fresh: Schema.Boolean })
const NowRow = Schema.Struct({ now_ms: Schema.Finite })
const WorkerRow = Schema.Struct({
  worker: Schema.String,
  host: NullText,
  pid: Schema.NullOr(Schema.Int),
  serves: NullText,
  version: NullText,
  started_at_ms: NullTime,
  beat_at_ms: NullTime,
  stopped_at_ms: NullTime,
  in_flight: Schema.BigInt,
  settled: Schema.BigInt,
  taken_over: Schema.BigInt,
  now_ms: Schema.Finite
})

const make = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const ask = asker(sql)
  const send = sender(sql)
  return WorkerBook.of({
    beat: Effect.fn("WorkerBook.beat")(function*({ host, pid, serves, version, worker }) {
      const [row] = yield* ask("note a worker", Sql.beat, [text(worker), text(host), integer(pid), text(serves), text(version)], BeatRow)
      if (row?.fresh === true) yield* send("forget old workers", Sql.forget, [])
    }),
    leave: (worker) => send("note the end of a worker", Sql.leave, [text(worker)]),
    list: Effect.gen(function*() {
      const rows = yield* ask("list workers", Sql.list, [integer(newest)], WorkerRow)
      const atMs = rows[0]?.now_ms ?? (yield* ask("list workers", Sql.now, [], NowRow))[0]!.now_ms
      return {
        atMs,
        workers: rows.map((row) => ({
          worker: row.worker,
          host: row.host,
          pid: row.pid,
          serves: row.serves,
          version: row.version,
          startedAtMs: row.started_at_ms,
          beatAtMs: row.beat_at_ms,
          stoppedAtMs: row.stopped_at_ms,
          inFlight: Number(row.in_flight),
          settledLastMinute: Number(row.settled),
          takenOverLastMinute: Number(row.taken_over)
        }))
      }
    })
  })
})

const beatEvery = Config.Duration("PURSER_WORKER_BEAT").pipe(Config.withDefault(Duration.seconds(5)))

/** The workers' book: its layer, and a worker's part in it. */
export const PgWorkerBook: {
  /** On the tables of `Migrations`. */
  readonly layer: Layer.Layer<WorkerBook, never, SqlClient.SqlClient>
  /** Writes a worker's beat at once and every `PURSER_WORKER_BEAT` until the scope ends. A store that is away is not the worker's affair. */
  readonly layerBeat: (self: WorkerSelf) => Layer.Layer<never, Config.ConfigError, SqlClient.SqlClient>
} = {
  layer: Layer.effect(WorkerBook, make),
  layerBeat: (self) =>
    Layer.effectDiscard(Effect.gen(function*() {
      const book = yield* make
      const every = yield* beatEvery
      yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(book.leave(self.worker), Duration.seconds(1))))
      const beat = Effect.ignore(book.beat(self))
      // What it registers under its name comes after the first one.
      yield* Effect.ignore(Effect.timeout(beat, Duration.seconds(1)))
      // A beat belongs to no work: each would be a trace of its own.
      yield* Effect.forkScoped(Effect.withTracerEnabled(Effect.repeat(Effect.andThen(Effect.sleep(every), beat), Schedule.forever), false))
    }))
}
