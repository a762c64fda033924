/** The memory layers pass the suites that the drivers pass. */
import { EventLog, Ledger, RefundLedger, RunLedger, Sightings, SpendCap, Transport } from "@purser/core"
import { Layer } from "effect"
import * as EventLogConformance from "../src/EventLogConformance.ts"
import * as LedgerConformance from "../src/LedgerConformance.ts"
import * as RefundLedgerConformance from "../src/RefundLedgerConformance.ts"
import * as RunLedgerConformance from "../src/RunLedgerConformance.ts"
import * as SpendCapConformance from "../src/SpendCapConformance.ts"
import { StoreClock } from "../src/StoreClock.ts"
import { TransportConformance } from "../src/TransportConformance.ts"

LedgerConformance.suite("memory", Layer.merge(Ledger.layerMemory, StoreClock.layerTestClock))
EventLogConformance.suite("memory", EventLog.layerMemory.pipe(Layer.provideMerge(Ledger.layerMemory)))
RefundLedgerConformance.suite("memory", Layer.merge(RefundLedger.layerMemory.pipe(Layer.provideMerge(Layer.merge(Ledger.layerMemory, Sightings.layerMemory))), StoreClock.layerTestClock))
SpendCapConformance.suite("memory", SpendCap.layerMemory)
RunLedgerConformance.suite(
  "memory",
  Layer.mergeAll(RunLedger.layerMemory.pipe(Layer.provideMerge(Ledger.layerMemory)), SpendCap.layerMemory, StoreClock.layerTestClock)
)
TransportConformance.suite("memory", Transport.layerMemory)
