/**
 * The contract of a look at the processor's account as it stands: single objects and whole lists, page by page.
 *
 * It reads and never writes; whoever holds it alone can move no money. What an absent object means is the caller's affair.
 */
import { Context, type Effect } from "effect"
import type { ChargeError } from "./ChargeError.ts"
import type { GatewayPayment } from "./ChargeGateway.ts"

/** What our metadata say about an object: whose it is. `chargeKey` is as written there, and proves nothing by itself. */
export interface AccountIdentity {
  readonly chargeKey: string
  readonly customerId: string | null
  readonly billingPeriod: string | null
  readonly namespace: string | null
  readonly item: string | null
  /** 0 for a first billing. Null when it cannot be read: then the identity is not whole. */
  readonly revision: number | null
  readonly generation: number | null
}

/** The identity in our metadata, or null when they bear no charge key. */
export const accountIdentity = (metadata: Readonly<Record<string, string>> | null | undefined): AccountIdentity | null => {
  const chargeKey = metadata?.["charge_key"]
  if (metadata === null || metadata === undefined || chargeKey === undefined) return null
  const generation = metadata["generation"]
  const revision = metadata["revision"]
  return {
    chargeKey,
    customerId: metadata["customer_id"] ?? null,
    billingPeriod: metadata["billing_period"] ?? null,
    namespace: metadata["namespace"] ?? null,
    item: metadata["item"] ?? null,
    revision: revision === undefined || revision === "" ? 0 : /^\d{1,9}$/.test(revision) ? Number(revision) : null,
    generation: generation !== undefined && /^\d{1,9}$/.test(generation) ? Number(generation) : null
  }
}

/** A payment object. Amounts in minor units, times in milliseconds of the Unix epoch. */
export interface AccountPayment {
  readonly id: string
  /** `other` is a state that our way of paying cannot lead to. */
  readonly status: GatewayPayment["status"] | "other"
  readonly amountMinor: number
  readonly amountReceivedMinor: number
  readonly currency: string
  readonly stripeCustomerId: string | null
  readonly createdMs: number
  readonly chargeId: string | null
  readonly paymentMethod: string | null
  /** Null when it bears no charge key. */
  readonly identity: AccountIdentity | null
}

/** A charge: one movement of money, whoever caused it. */
export interface AccountCharge {
  readonly id: string
  readonly paymentIntentId: string | null
  readonly status: "succeeded" | "pending" | "failed"
  readonly amountMinor: number
  readonly amountRefundedMinor: number
  readonly currency: string
  readonly stripeCustomerId: string | null
  readonly createdMs: number
  readonly isDisputed: boolean
  readonly paymentMethod: string | null
  readonly description: string | null
  readonly metadata: Readonly<Record<string, string>>
}

/** A refund or a dispute. */
export interface AccountReversal {
  readonly id: string
  readonly kind: "refund" | "dispute"
  readonly chargeId: string | null
  readonly paymentIntentId: string | null
  readonly amountMinor: number
  readonly currency: string
  readonly status: string
  readonly reason: string | null
  readonly createdMs: number
  readonly metadata: Readonly<Record<string, string>>
}

/** A charge that stands alone, without an object that was made before it, as a payment. */
export const chargeAsPayment = (charge: AccountCharge): AccountPayment => ({
  id: charge.id,
  status: charge.status === "succeeded" ? "succeeded" : charge.status === "pending" ? "processing" : "declined",
  amountMinor: charge.amountMinor,
  amountReceivedMinor: charge.status === "succeeded" ? charge.amountMinor : 0,
  currency: charge.currency,
  stripeCustomerId: charge.stripeCustomerId,
  createdMs: charge.createdMs,
  chargeId: charge.id,
  paymentMethod: charge.paymentMethod,
  identity: accountIdentity(charge.metadata)
})

/** Which request made an object, as the processor's own events tell it. */
export interface AccountOrigin {
  readonly objectId: string
  readonly idempotencyKey: string | null
  readonly requestId: string | null
}

/** From and to by the time of creation, both included. */
export interface AccountRange {
  readonly fromMs: number
  readonly toMs: number
}

/** One page of a list, newest first; `next` asks for the one after it. */
export interface AccountPage<A> {
  readonly items: ReadonlyArray<A>
  readonly next: string | undefined
}

/** A list that is read page by page. */
export type AccountList<A> = (range: AccountRange, after: string | undefined) => Effect.Effect<AccountPage<A>, ChargeError>

/** One account as a reader sees it. Every method needs nothing and fails with `ChargeError` only; an object that is not there is `undefined`. */
export interface AccountReader {
  /** The connected account that is looked at; null for the key's own. */
  readonly account: string | null
  readonly payment: (id: string) => Effect.Effect<AccountPayment | undefined, ChargeError>
  /** The invoice that a payment was made for, if it was made for one: an invoice's own payment bears none of our metadata. */
  readonly invoiceOf: (paymentId: string) => Effect.Effect<AccountPayment | undefined, ChargeError>
  readonly charge: (id: string) => Effect.Effect<AccountCharge | undefined, ChargeError>
  readonly reversal: (kind: AccountReversal["kind"], id: string) => Effect.Effect<AccountReversal | undefined, ChargeError>
  /** All refunds of one charge. */
  readonly refundsOf: (chargeId: string) => Effect.Effect<ReadonlyArray<AccountReversal>, ChargeError>
  /** All disputes of one charge. */
  readonly disputesOf: (chargeId: string) => Effect.Effect<ReadonlyArray<AccountReversal>, ChargeError>
  readonly payments: AccountList<AccountPayment>
  /** Invoices, as payment objects. */
  readonly invoices: AccountList<AccountPayment>
  readonly charges: AccountList<AccountCharge>
  /** Which requests made the payments of the range, as far back as the processor keeps its events. */
  readonly origins: AccountList<AccountOrigin>
}

/** The account of the settings, and the way to those that namespaces name. */
export class ProcessorAccount extends Context.Service<ProcessorAccount, AccountReader & {
  /** The account of a namespace's charges: the one that it names, else that of the settings. */
  readonly accountOf: (namespace: string) => string | null
  /** The reader of another account; of the settings' account it is this one. */
  readonly at: (account: string | null) => AccountReader
}>()("@purser/core/ProcessorAccount") {}
