/** The memory book of dunning passes the suite that the drivers pass. */
import { DunningBook, Ledger } from "@purser/core"
import { Layer } from "effect"
import * as DunningBookConformance from "../src/DunningBookConformance.ts"
import { StoreClock } from "../src/StoreClock.ts"

DunningBookConformance.suite("memory", Layer.merge(DunningBook.layerMemory.pipe(Layer.provideMerge(Ledger.layerMemory)), StoreClock.layerTestClock))
