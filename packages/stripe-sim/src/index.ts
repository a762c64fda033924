/** A stateful Stripe over real HTTP, with faults and books of its own. */
export * from "./Books.ts"
export * from "./Fault.ts"
export * from "./Journal.ts"
export * from "./RateLimits.ts"
export * from "./RestrictedKey.ts"
export * from "./StripeSim.ts"
export * as TestCards from "./TestCards.ts"
export * from "./Webhook.ts"
