/** The memory layers pass the suites that the drivers pass. */
import { Ledger } from "@purser/core"
import { Layer } from "effect"
import * as LedgerConformance from "../src/LedgerConformance.ts"
import { StoreClock } from "../src/StoreClock.ts"

LedgerConformance.suite("memory", Layer.merge(Ledger.layerMemory, StoreClock.layerTestClock))
