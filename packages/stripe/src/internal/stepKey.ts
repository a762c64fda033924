/** Stripe's idempotency key of one step of a charge: made of the charge, its generation and the step, and of nothing that a process knows. */
import type { GatewayOrder } from "@purser/core"

/** `suffix` sets a further try apart where the one before was answered for good. */
export const stepKey = (order: GatewayOrder, step: string, suffix: string): string => `${order.chargeKey}:g${order.generation}:${step}${suffix}`
