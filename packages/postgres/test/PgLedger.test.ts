/** The ledger on both databases passes the suite of every ledger. */
import * as LedgerConformance from "@purser/testkit/LedgerConformance"
import { Layer } from "effect"
import { PgLedger } from "../src/PgLedger.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { storeClock } from "./support/storeClock.ts"

for (const [name, database] of TestDatabase.layers) {
  LedgerConformance.suite(name, Layer.merge(PgLedger.layer, storeClock).pipe(Layer.provide(database)))
}
