/** The book of dunning on both databases passes the suite of every such book. */
import * as DunningBookConformance from "@purser/testkit/DunningBookConformance"
import { Layer } from "effect"
import { PgDunningBook } from "../src/PgDunningBook.ts"
import { PgLedger } from "../src/PgLedger.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { storeClock } from "./support/storeClock.ts"

for (const [name, database] of TestDatabase.layers) {
  DunningBookConformance.suite(name, Layer.mergeAll(PgDunningBook.layer, PgLedger.layer, storeClock).pipe(Layer.provide(database)))
}
