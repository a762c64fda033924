/** The book of refunds on both databases passes the suite of every such book. */
import * as RefundLedgerConformance from "@purser/testkit/RefundLedgerConformance"
import { Layer } from "effect"
import { PgLedger } from "../src/PgLedger.ts"
import { PgRefundLedger } from "../src/PgRefundLedger.ts"
import { PgSightings } from "../src/PgSightings.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { storeClock } from "./support/storeClock.ts"

for (const [name, database] of TestDatabase.layers) {
  RefundLedgerConformance.suite(name, Layer.mergeAll(PgLedger.layer, PgRefundLedger.layer, PgSightings.layer, storeClock).pipe(Layer.provide(database)))
}
