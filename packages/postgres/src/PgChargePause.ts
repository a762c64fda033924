/**
 * The switch that stops all charging, on PostgreSQL (or PGlite). Every process reads it on a beat of its own, so that a
 * pause reaches all workers of the database within `PURSER_PAUSE_POLL`, and one that starts later too. A store that cannot
 * be read changes nobody's mind; a process that has never read it charges nothing.
 */
import { ChargePause, makePauseView, type Pause } from "@purser/core"
import { Config, Duration, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { decodeRows } from "./internal/chargeRow.ts"
import { ledgerUnavailable, retryRolledBack } from "./internal/failures.ts"
import { text } from "./internal/params.ts"
import * as Sql from "./internal/pauseSql.ts"

const PauseRow = Schema.Struct({
  cause: Schema.Literals(["person", "outage"]),
  actor: Schema.String,
  reason: Schema.String,
  since_ms: Schema.Finite
})
const decodePauses = decodeRows(PauseRow)
const pauseOf = ({ since_ms, ...row }: typeof PauseRow.Type): Pause => ({ ...row, sinceMs: since_ms })

const pollEvery = Config.Duration("PURSER_PAUSE_POLL").pipe(Config.withDefault(Duration.seconds(1)))

const make = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const every = yield* pollEvery
  const { show, ...view } = yield* makePauseView(false)

  const inForce = retryRolledBack(Effect.flatMap(sql.unsafe(Sql.inForce), decodePauses)).pipe(
    Effect.map((rows) => rows.map(pauseOf)),
    Effect.tap(show),
    Effect.mapError(ledgerUnavailable("pause"))
  )
  const act = (operation: "pause" | "resume", statement: string): ChargePause["Service"]["pause"] => ({ actor, cause, reason }) =>
    retryRolledBack(sql.unsafe(statement, [text(cause), text(actor), text(reason)])).pipe(
      Effect.mapError(ledgerUnavailable(operation)),
      Effect.flatMap((rows) => Effect.as(inForce, rows.length > 0))
    )
  let silent = false
  yield* inForce.pipe(
    Effect.matchEffect({
      onSuccess: () => Effect.sync(() => void (silent = false)),
      // Once for every time that the store goes away.
      onFailure: (error) =>
        Effect.suspend(() => {
          if (silent) return Effect.void
          silent = true
          return Effect.logWarning(`whether charging is paused cannot be read: ${error.message}`)
        })
    }),
    Effect.andThen(Effect.sleep(every)),
    Effect.forever,
    // A look of the clock's belongs to no work: each would be a trace of its own.
    Effect.withTracerEnabled(false),
    Effect.forkScoped
  )
  return ChargePause.of({ ...view, inForce, pause: act("pause", Sql.pause), resume: act("resume", Sql.resume) })
})

/** The switch's layers. */
export const PgChargePause: {
  /** The switch on the tables of `Migrations`. */
  readonly layer: Layer.Layer<ChargePause, Config.ConfigError, SqlClient.SqlClient>
} = { layer: Layer.effect(ChargePause, make) }
