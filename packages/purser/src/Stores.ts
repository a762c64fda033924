/** The ledger, the cap, the run book, refunds, what webhooks keep and the order of events, on one database from the configuration, migrated when the layer is built. */
import type { ChargePause, DeadLetters, EventLog, Ledger, ReconcileBook, RunLedger, Sightings, SpendCap, WebhookInbox } from "@purser/core"
import { Database, PgChargePause, PgDeadLetters, PgEventLog, PgLedger, PgReconcileBook, PgRefundLedger, PgRunLedger, PgSightings, PgSpendCap, PgWebhookInbox } from "@purser/postgres"
import { Layer } from "effect"

/** Layers of the stores. */
export const Stores = {
  /** `PURSER_DATABASE_URL`, else embedded PGlite in `PURSER_DATA_DIR`. */
  layerConfig: Layer.mergeAll(PgLedger.layer, PgSpendCap.layer, PgChargePause.layer, PgRunLedger.layer, PgRefundLedger.layer, PgReconcileBook.layer, PgWebhookInbox.layer, PgSightings.layer, PgDeadLetters.layer, PgEventLog.layer).pipe(Layer.provideMerge(Database.layerConfig))
}

/** What {@link Stores} provides of the contracts. */
export type StoreServices = Ledger | SpendCap | ChargePause | RunLedger | ReconcileBook | WebhookInbox | Sightings | DeadLetters | EventLog
