/** The cap on both databases passes the suite of every cap. */
import * as SpendCapConformance from "@purser/testkit/SpendCapConformance"
import { Layer } from "effect"
import { PgSpendCap } from "../src/PgSpendCap.ts"
import * as TestDatabase from "../src/TestDatabase.ts"

for (const [name, database] of TestDatabase.layers) SpendCapConformance.suite(name, PgSpendCap.layer.pipe(Layer.provide(database)))
