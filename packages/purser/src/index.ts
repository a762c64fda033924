/** Purser with batteries included. */
export * from "./Purser.ts"
export * from "./PurserWebhooks.ts"
export * from "./QueryRun.ts"
export * from "./Runner.ts"
export * from "./Stores.ts"
export * from "./Transports.ts"
export * from "./Telemetry.ts"
