/** The memory layers of what webhooks keep pass the suites that the drivers pass. */
import { Ledger, ReconcileBook, Sightings, WebhookInbox } from "@purser/core"
import { Layer } from "effect"
import * as ReconcileBookConformance from "../src/ReconcileBookConformance.ts"
import * as SightingsConformance from "../src/SightingsConformance.ts"
import { StoreClock } from "../src/StoreClock.ts"
import * as WebhookInboxConformance from "../src/WebhookInboxConformance.ts"

WebhookInboxConformance.suite("memory", Layer.merge(WebhookInbox.layerMemory, StoreClock.layerTestClock))
SightingsConformance.suite("memory", Layer.merge(Sightings.layerMemory, StoreClock.layerTestClock))
ReconcileBookConformance.suite("memory", Layer.merge(ReconcileBook.layerMemory.pipe(Layer.provideMerge(Ledger.layerMemory)), StoreClock.layerTestClock))
