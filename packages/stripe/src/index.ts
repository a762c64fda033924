/** Purser's charge gateway for Stripe. */
export * from "./KeyPolicy.ts"
export * from "./StripeAccount.ts"
export * from "./StripeCallError.ts"
export * from "./StripeClient.ts"
export * from "./StripeConfig.ts"
export * from "./StripeConfigError.ts"
export * from "./StripeGateway.ts"
export * from "./StripeWebhooks.ts"
