/** What webhooks keep passes its suites on both databases. */
import * as ReconcileBookConformance from "@purser/testkit/ReconcileBookConformance"
import * as SightingsConformance from "@purser/testkit/SightingsConformance"
import * as WebhookInboxConformance from "@purser/testkit/WebhookInboxConformance"
import { Layer } from "effect"
import { PgLedger } from "../src/PgLedger.ts"
import { PgReconcileBook } from "../src/PgReconcileBook.ts"
import { PgSightings } from "../src/PgSightings.ts"
import { PgWebhookInbox } from "../src/PgWebhookInbox.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { storeClock } from "./support/storeClock.ts"

for (const [name, database] of TestDatabase.layers) {
  WebhookInboxConformance.suite(name, Layer.merge(PgWebhookInbox.layer, storeClock).pipe(Layer.provide(database)))
  ReconcileBookConformance.suite(name, Layer.mergeAll(PgReconcileBook.layer, PgLedger.layer, storeClock).pipe(Layer.provide(database)))
  SightingsConformance.suite(name, Layer.merge(PgSightings.layer, storeClock).pipe(Layer.provide(database)))
}
