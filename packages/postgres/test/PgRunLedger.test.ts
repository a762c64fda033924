/** The run book on both databases passes the suite of every run book. */
import * as RunLedgerConformance from "@purser/testkit/RunLedgerConformance"
import { Layer } from "effect"
import { PgLedger } from "../src/PgLedger.ts"
import { PgRunLedger } from "../src/PgRunLedger.ts"
import { PgSpendCap } from "../src/PgSpendCap.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { storeClock } from "./support/storeClock.ts"

for (const [name, database] of TestDatabase.layers) {
  RunLedgerConformance.suite(
    name,
    Layer.mergeAll(PgRunLedger.layer, PgLedger.layer, PgSpendCap.layer, storeClock).pipe(Layer.provide(database))
  )
}
