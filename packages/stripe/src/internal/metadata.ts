/** What every object of ours at Stripe says about itself; look-ups and reconciliation read it. */
import type { GatewayOrder } from "@purser/core"

/** Identity, charge key and generation, as Stripe's metadata. */
export const metadataOf = ({ chargeKey, generation, request }: GatewayOrder): Record<string, string> => ({
  charge_key: chargeKey,
  customer_id: request.customerId,
  billing_period: request.billingPeriod,
  namespace: request.namespace,
  ...(request.item === undefined ? {} : { item: request.item }),
  ...(request.revision === undefined ? {} : { revision: String(request.revision) }),
  generation: String(generation)
})
