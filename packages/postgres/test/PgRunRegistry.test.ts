/** The register of runs on both databases passes the suite of every register. */
import * as RunRegistryConformance from "@purser/testkit/RunRegistryConformance"
import { Layer } from "effect"
import { PgRunRegistry } from "../src/PgRunRegistry.ts"
import * as TestDatabase from "../src/TestDatabase.ts"

for (const [name, database] of TestDatabase.layers) RunRegistryConformance.suite(name, Layer.provide(PgRunRegistry.layer, database))
