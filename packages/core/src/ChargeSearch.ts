/**
 * The contract of looking for charges: by customer, period, state or payment object, page by page in a fixed order.
 *
 * A page costs the same wherever it lies and however many charges there are: it walks an index from where the last one
 * ended, and looks at a bounded number of rows. Where few of them fit, a page may hold less than asked for, or nothing,
 * and the search still goes on.
 */
import { Context, type Effect } from "effect"
import type { ChargeKey } from "./ChargeKey.ts"
import type { ChargeState } from "./Ledger.ts"
import type { LedgerError } from "./LedgerError.ts"

/** What to look for; every field narrows. */
export interface ChargeQuery {
  /** A whole customer id, or its beginning. */
  readonly customer?: { readonly text: string; readonly whole: boolean }
  readonly billingPeriod?: string
  readonly state?: ChargeState | "quarantined"
  /** The id of a PaymentIntent, or of what stands for it; alone, since it names one charge. */
  readonly paymentIntentId?: string
}

/** One charge as a line of a list. Amounts in minor units, times on the store's clock. */
export interface ChargeLine {
  readonly chargeKey: ChargeKey
  readonly namespace: string
  readonly customerId: string
  readonly billingPeriod: string
  readonly item: string | null
  readonly revision: number
  readonly amountMinor: number
  readonly receivedMinor: number | null
  readonly currency: string
  readonly stripeCustomerId: string
  readonly state: ChargeState
  readonly attempt: number
  readonly paymentIntentId: string | null
  readonly quarantine: string | null
  readonly detail: string | null
  readonly updatedAtMs: number
}

/** Where a search goes on: the place of the last row that was looked at, in the words of the store. */
export interface ChargePlace {
  readonly customerId: string
  readonly billingPeriod: string
  readonly chargeKey: string
}

/** A part of what was found. `next` is where to go on, null at the end; `looked` counts the rows that were looked at. */
export interface ChargePage {
  readonly charges: ReadonlyArray<ChargeLine>
  readonly next: ChargePlace | null
  readonly looked: number
}

/** The search. Every method needs nothing and fails with `LedgerError` only. */
export class ChargeSearch extends Context.Service<ChargeSearch, {
  /** A page of up to `limit` charges, after a place. The newest period comes first, and of a period the newest charges; or the customers in their order. */
  readonly find: (query: ChargeQuery, after: ChargePlace | null, limit: number) => Effect.Effect<ChargePage, LedgerError>
}>()("@purser/core/ChargeSearch") {}
