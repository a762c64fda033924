/**
 * Named places in the protocol at which a test can make a process die or stall. In a build nothing is registered, and a
 * place costs a look at whether it is so.
 */
import { Context, Effect } from "effect"
import type { ChargeKey } from "./ChargeKey.ts"

/** The places, in the order in which a charge passes them. */
export const faultPlaces = [
  "before-claim", "after-claim", "after-reserve", "before-create", "after-create", "after-attach", "before-confirm", "after-confirm", "after-settle", "after-release"
] as const

/** The places that a refund passes, in their order. */
export const refundFaultPlaces = ["refund-after-claim", "refund-before-call", "refund-after-call", "refund-after-settle"] as const
export type FaultPlace = typeof faultPlaces[number] | typeof refundFaultPlaces[number]

/** What a place calls. */
export type FaultHook = (place: FaultPlace, chargeKey: ChargeKey) => Effect.Effect<void>

/** Nothing happens at any place; those who find it need not pass any. */
export const noFault: FaultHook = () => Effect.void

/** Called at every place; the default does nothing. */
export const FaultPoint = Context.Reference<FaultHook>("@purser/core/FaultPoint", { defaultValue: () => noFault })
