/** Test layers, fault plans and conformance suites. */
export * from "./chargeFor.ts"
export * from "./FaultPlan.ts"
export * from "./FaultPoints.ts"
export * from "./MockGateway.ts"
export * from "./SpanJournal.ts"
export * from "./TestPipeline.ts"
