/** The database's clock as the conformance suites move it. */
import { StoreClock } from "@purser/testkit/StoreClock"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as DatabaseClock from "../../src/DatabaseClock.ts"

export const storeClock: Layer.Layer<StoreClock, never, SqlClient.SqlClient> = Layer.effect(
  StoreClock,
  Effect.map(SqlClient.SqlClient, (sql) => ({
    advance: (ms: number) => DatabaseClock.advance(ms).pipe(Effect.provideService(SqlClient.SqlClient, sql), Effect.orDie)
  }))
)
