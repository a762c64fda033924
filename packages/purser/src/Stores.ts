/** The ledger, the cap, the run book, refunds, dunning cases, what webhooks keep and the order of events, on one database from the configuration, migrated when the layer is built. */
import { type Attention, type ChargePause, type DeadLetters, type DunningBook, type EventLog, type Ledger, type ReconcileBook, type RefundLedger, type RunLedger, type RunRegistry, type RunSchedules, type RunStash, type Sightings, SpendCap, type WebhookInbox } from "@purser/core"
import { Database, PgAttention, PgCallBook, PgChargePause, PgDeadLetters, PgDunningBook, PgEventLog, PgLedger, PgReconcileBook, PgRefundLedger, PgRunLedger, PgRunRegistry, PgSightings, PgSpendCap, PgWebhookInbox } from "@purser/postgres"
import { Config, Effect, Layer } from "effect"

/** `PURSER_SPEND_CAP`: the ledger's database keeps the cap, or the spend-cap proxy that `PURSER_STRIPE_URL` names. */
const capLayer = Layer.unwrap(Effect.map(
  Config.Literals(["ledger", "proxy"], "PURSER_SPEND_CAP").pipe(Config.withDefault("ledger" as const)),
  (keeper) => keeper === "proxy" ? SpendCap.layerProxy : PgSpendCap.layer
))

/** Layers of the stores. */
export const Stores = {
  /** `PURSER_DATABASE_URL`, else embedded PGlite in `PURSER_DATA_DIR`. With it come the sinks of what is kept for a person beside the way of a charge. */
  layerConfig: Layer.mergeAll(PgLedger.layer, capLayer, PgChargePause.layer, PgRunLedger.layer, PgRunRegistry.layer, PgDunningBook.layer, PgRefundLedger.layer, PgReconcileBook.layer, PgWebhookInbox.layer, PgSightings.layer, PgDeadLetters.layer, PgEventLog.layer, PgCallBook.layerSink, PgAttention.layerSink, PgAttention.layer).pipe(Layer.provideMerge(Database.layerConfig))
}

/** What {@link Stores} provides of the contracts. */
export type StoreServices = Attention | Ledger | SpendCap | ChargePause | RunLedger | RunRegistry | RunSchedules | RunStash | DunningBook | RefundLedger | ReconcileBook | WebhookInbox | Sightings | DeadLetters | EventLog
