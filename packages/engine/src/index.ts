/** The steps of one charge, and who runs them. */
export * from "./BillingRun.ts"
export * from "./ChargePipeline.ts"
export * from "./ChargeWorker.ts"
export * from "./PipelineOptions.ts"
export * from "./RunError.ts"
export * from "./Sweeper.ts"
export * from "./WebhookHttp.ts"
export * from "./Webhooks.ts"
