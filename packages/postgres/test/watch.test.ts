/** What webhooks keep passes its suites on both databases. */
import * as SightingsConformance from "@purser/testkit/SightingsConformance"
import * as WebhookInboxConformance from "@purser/testkit/WebhookInboxConformance"
import { Layer } from "effect"
import { PgSightings } from "../src/PgSightings.ts"
import { PgWebhookInbox } from "../src/PgWebhookInbox.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { storeClock } from "./support/storeClock.ts"

for (const [name, database] of TestDatabase.layers) {
  WebhookInboxConformance.suite(name, Layer.merge(PgWebhookInbox.layer, storeClock).pipe(Layer.provide(database)))
  SightingsConformance.suite(name, Layer.merge(PgSightings.layer, storeClock).pipe(Layer.provide(database)))
}
