/** The ledger, the cap and the run book on one database from the configuration, migrated when the layer is built. */
import type { Ledger, RunLedger, SpendCap } from "@purser/core"
import { Database, PgLedger, PgRunLedger, PgSpendCap } from "@purser/postgres"
import { Layer } from "effect"

/** Layers of the stores. */
export const Stores = {
  /** `PURSER_DATABASE_URL`, else embedded PGlite in `PURSER_DATA_DIR`. */
  layerConfig: Layer.mergeAll(PgLedger.layer, PgSpendCap.layer, PgRunLedger.layer).pipe(Layer.provideMerge(Database.layerConfig))
}

/** What {@link Stores} provides of the contracts. */
export type StoreServices = Ledger | SpendCap | RunLedger
