/**
 * The contract of what was seen at the processor and was not made by the ledger's own steps: disputes, refunds made
 * elsewhere, and objects that belong to no row.
 *
 * A sighting moves no charge. It is shown beside the row, or waits in a list for a person or a reconciliation.
 */
import { Context, type Effect, Layer } from "effect"
import type { ChargeKey } from "./ChargeKey.ts"
import { makeSightingsMemory } from "./internal/sightingsMemory.ts"
import type { LedgerError } from "./LedgerError.ts"

/** Money that went, or may go, back without the ledger's doing. Amounts in minor units. */
export interface Movement {
  readonly id: string
  readonly kind: "refund" | "dispute"
  readonly chargeKey: ChargeKey
  readonly paymentIntentId: string | null
  /** With the payment's it tells which of two payments of one identity it belongs to. */
  readonly chargeId: string | null
  readonly amountMinor: number
  readonly currency: string
  /** The processor's word, for example `succeeded`, `needs_response`, `lost`. */
  readonly status: string
  readonly reason: string | null
  /** When it was made, on the processor's clock. */
  readonly createdMs: number
}

/** Why an object is listed. */
export type UnknownReason =
  /** It bears a charge key of which the ledger has no row. */
  | "missing_here"
  /** It was paid under a charge key whose row names another object. */
  | "not_attached"
  /** It bears no charge key: another program's. */
  | "foreign"
  /** An event named it, and the processor does not know it. */
  | "missing_there"

/** An object that belongs to no row. */
export interface UnknownObject {
  readonly id: string
  readonly reason: UnknownReason
  readonly chargeKey: string | null
  readonly amountMinor: number | null
  readonly currency: string | null
  readonly stripeCustomerId: string | null
  readonly status: string | null
  readonly detail: string | null
}

/** An object of the list. */
export interface ListedObject extends UnknownObject {
  readonly firstSeenMs: number
  readonly lastSeenMs: number
}

/** The store of sightings. Every method needs nothing and fails with `LedgerError` only. */
export class Sightings extends Context.Service<Sightings, {
  /** Notes a movement as it stands now; the later word about one id replaces the earlier. */
  readonly note: (movement: Movement) => Effect.Effect<void, LedgerError>
  /** Movements of one charge, oldest first. */
  readonly movements: (chargeKey: ChargeKey) => Effect.Effect<ReadonlyArray<Movement>, LedgerError>
  /** Puts an object on the list, or renews what is said about it. One that was taken off comes back. */
  readonly list: (object: UnknownObject) => Effect.Effect<void, LedgerError>
  /** Takes an object off the list, since it has found its row or a person has dealt with it. False when it is not on it. */
  readonly unlist: (id: string, resolution: string) => Effect.Effect<boolean, LedgerError>
  /** The list in the order of ids, after `afterId`. */
  readonly unknown: (afterId: string, limit: number) => Effect.Effect<ReadonlyArray<ListedObject>, LedgerError>
}>()("@purser/core/Sightings") {
  /** Sightings in memory, on Effect's clock. */
  static readonly layerMemory: Layer.Layer<Sightings> = Layer.effect(Sightings, makeSightingsMemory)
}
