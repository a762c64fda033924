/**
 * The contract of the spend cap: per namespace, billing period and currency, the sum of what was or may have been charged stays within
 * a figure that a person set. Checking and taking room is one act. No cap, no charge.
 */
import { Context, type Effect, Layer } from "effect"
import type { BillingPeriod } from "./BillingPeriod.ts"
import type { ChargeKey } from "./ChargeKey.ts"
import type { Currency } from "./Currency.ts"
import { makeSpendCapMemory } from "./internal/spendCapMemory.ts"
import { spendCapProxy } from "./internal/spendCapProxy.ts"
import type { SpendCapError } from "./SpendCapError.ts"

/** What one cap counts: charges of one namespace, period and currency. */
export interface CapScope {
  readonly namespace: string
  readonly billingPeriod: BillingPeriod
  readonly currency: Currency
}

/** Room for one charge: its key, its attempt (1, 2, …) and its amount in minor units. */
export interface Reservation extends CapScope {
  readonly chargeKey: ChargeKey
  readonly attempt: number
  readonly amountMinor: number
}

/** Figures of one cap in minor units. */
export interface CapReport extends CapScope {
  readonly expectedMinor: bigint
  /** Hundredths: 110 is the expected total and a tenth more. */
  readonly headroomPercent: number
  readonly capMinor: bigint
  /** Room taken: paid, possibly paid, and on the way. */
  readonly reservedMinor: bigint
  readonly reservations: number
  readonly closed: boolean
}

/** The keeper of the caps. Every method needs nothing and fails with `SpendCapError` only. */
export class SpendCap extends Context.Service<SpendCap, {
  /** Where the caps are; see `Ledger`. */
  readonly store?: object
  /**
   * Opens a cap. The same figures again change nothing; other figures are `CapAlreadyOpen`. It begins with the payments that were found while none was open for
   * them (see `reserveByForce`), also with more than it allows. `runId`: the run that it is opened for, kept in its history.
   */
  readonly open: (input: CapScope & { readonly expectedMinor: bigint; readonly headroomPercent: number; readonly runId?: string }) => Effect.Effect<CapReport, SpendCapError>
  /**
   * Takes room for one charge, keyed by its key: a second reserve of the same key takes no more. The reservation
   * carries the highest attempt that reserved, so that the late release of an earlier attempt cannot undo a later one.
   */
  readonly reserve: (input: Reservation) => Effect.Effect<void, SpendCapError>
  /**
   * Takes room for money that has moved already, even over the cap; answers the overrun in minor units, 0 when it fits or held its room before. Without a cap it is
   * `CapMissing`, and is noted: a cap that is opened later takes it in.
   */
  readonly reserveByForce: (input: Reservation) => Effect.Effect<bigint, SpendCapError>
  /** Gives room back, on evidence that this attempt moved no money. Twice is once; nothing happens when a later attempt has reserved. */
  readonly release: (chargeKey: ChargeKey, attempt: number) => Effect.Effect<void, SpendCapError>
  /** Sets new figures by an explicit act that is recorded with actor and reason. */
  readonly raise: (input: CapScope & {
    readonly expectedMinor: bigint
    readonly headroomPercent: number
    readonly actor: string
    readonly reason: string
  }) => Effect.Effect<CapReport, SpendCapError>
  /** Takes no more charges for the period; room that is taken stays taken. Who and why are recorded where they are told. */
  readonly close: (scope: CapScope, act?: { readonly actor: string; readonly reason?: string }) => Effect.Effect<void, SpendCapError>
  /** Takes charges for a closed period again, under the figures that it has, by an explicit act that is recorded. A cap that is open stays as it is. */
  readonly reopen: (input: CapScope & { readonly actor: string; readonly reason: string }) => Effect.Effect<CapReport, SpendCapError>
  /** The caps of a period, or all. */
  readonly report: (billingPeriod?: BillingPeriod) => Effect.Effect<ReadonlyArray<CapReport>, SpendCapError>
}>()("@purser/core/SpendCap") {
  /** A cap in memory, for tests and trials. */
  static readonly layerMemory: Layer.Layer<SpendCap> = Layer.effect(SpendCap, makeSpendCapMemory)

  /**
   * For a processor that is reached through the spend-cap proxy: the vault key's cap is the cap, kept before each call and
   * apart from the ledger. Here every charge has room; what does not fit is refused by the proxy and recorded as `Rejected`.
   */
  static readonly layerProxy: Layer.Layer<SpendCap> = Layer.succeed(SpendCap, spendCapProxy)
}
