/**
 * Where workers put requests that say other terms than the ledger holds. They were answered to their senders already: this
 * keeps the evidence for a person. A reference and no service: a worker works without a store.
 */
import { Context, type Effect } from "effect"
import type { ChargeKey } from "./ChargeKey.ts"

/** What such a request said, and whose key sealed it, when the transport knows that. */
export interface RequestConflict {
  readonly chargeKey: ChargeKey
  readonly amountMinor: number
  readonly currency: string
  readonly stripeCustomerId: string
  readonly paymentMethod: string | null
  readonly principal: string | null
}

/** Keeps one soon, fails never; undefined where nobody keeps them. */
export type ConflictSink = ((conflict: RequestConflict) => Effect.Effect<void>) | undefined

/** The sink of a worker. */
export const ConflictSink = Context.Reference<ConflictSink>("@purser/core/ConflictSink", { defaultValue: () => undefined })
