/** What test layers need to see of the memory layers, and apps do not. */
export { memoryBooks } from "./internal/gatewayMemory.ts"
export { memoryRows } from "./internal/ledgerMemory.ts"
