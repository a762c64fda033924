/** What the console reads, beside the stores of the engine: on the same database. */
import type { Attention, CallBook, ChargeSearch, EventFeed, EventLog, OperatorTrail, RunStats, WorkerBook } from "@purser/core"
import { ChargeEventFeed } from "@purser/engine"
import { PgAttention, PgCallBook, PgChargeSearch, PgOperatorTrail, PgRunStats, PgWorkerBook } from "@purser/postgres"
import { type Config, Layer } from "effect"
import type { SqlClient } from "effect/sql"

/** What it adds to the stores. */
export type ConsoleStoreServices = Attention | CallBook | ChargeSearch | EventFeed | OperatorTrail | RunStats | WorkerBook

/** The layers. */
export const ConsoleStores: {
  /** On a database that is migrated. */
  readonly layer: Layer.Layer<ConsoleStoreServices, Config.ConfigError, SqlClient.SqlClient | EventLog>
} = {
  layer: Layer.mergeAll(PgAttention.layer, PgCallBook.layer, PgChargeSearch.layer, PgOperatorTrail.layer, PgRunStats.layer, PgWorkerBook.layer, ChargeEventFeed.layer)
}
