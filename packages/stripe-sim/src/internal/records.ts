/**
 * What the account remembers of each object, as small immutable records.
 *
 * A record is replaced, never changed: a saved answer can hold the version it showed and render it again years
 * later. Refuses to know HTTP and Stripe's full shapes (`render.ts` makes those).
 */
import type { Behaviour, Decline } from "../TestCards.ts"

/** Metadata as Stripe stores it. */
export type MetadataRecord = Readonly<Record<string, string>>

/** A customer, alive or deleted. */
export interface CustomerRecord {
  readonly id: string
  readonly createdS: number
  readonly deleted: boolean
  readonly email: string | null
  readonly name: string | null
  readonly description: string | null
  readonly phone: string | null
  readonly metadata: MetadataRecord
  readonly defaultPaymentMethod: string | null
  /** What the next invoice that is finalized takes into account: less than 0 is a credit, more is owed. */
  readonly balanceMinor: number
  /** The test clock in whose time they live. */
  readonly testClock: string | null
}

/** A payment method with what it does when charged. */
export interface PaymentMethodRecord {
  readonly id: string
  readonly createdS: number
  readonly customer: string | null
  readonly metadata: MetadataRecord
  readonly behaviour: Behaviour
}

/** The states of a PaymentIntent that the simulator reaches. */
export type IntentStatus =
  | "requires_payment_method"
  | "requires_confirmation"
  | "requires_action"
  | "processing"
  | "succeeded"
  | "canceled"

/** Why the last attempt failed. */
export interface IntentFailure {
  readonly decline: Decline
  readonly chargeId: string | undefined
  readonly method: PaymentMethodRecord
}

/** A PaymentIntent. Amounts in minor units, times in seconds. */
export interface IntentRecord {
  readonly id: string
  readonly seq: number
  readonly createdS: number
  readonly status: IntentStatus
  readonly amountMinor: number
  readonly amountReceivedMinor: number
  readonly currency: string
  readonly customer: string | null
  readonly paymentMethod: string | null
  readonly paymentMethodTypes: ReadonlyArray<string>
  readonly allowedTypes: ReadonlyArray<string> | null
  readonly automaticMethods: "off" | "always" | "never"
  readonly captureMethod: "automatic" | "automatic_async"
  readonly description: string | null
  readonly receiptEmail: string | null
  readonly statementDescriptor: string | null
  readonly statementDescriptorSuffix: string | null
  readonly transferGroup: string | null
  readonly setupFutureUsage: "off_session" | "on_session" | null
  readonly metadata: MetadataRecord
  readonly failure: IntentFailure | null
  readonly latestCharge: string | null
  readonly canceledAtS: number | null
  readonly cancellationReason: string | null
  /** The invoice that made it. */
  readonly invoice: string | null
}

/** A charge: an attempt of a PaymentIntent, or a payment of the old one-call API (`intent` is null). */
export interface ChargeRecord {
  readonly id: string
  readonly seq: number
  readonly createdS: number
  readonly status: "succeeded" | "pending" | "failed"
  readonly amountMinor: number
  readonly currency: string
  readonly customer: string | null
  readonly intent: string | null
  readonly method: PaymentMethodRecord
  readonly description: string | null
  readonly metadata: MetadataRecord
  readonly decline: Decline | null
  /** What refunds gave back, in minor units; refunds that failed count no more. */
  readonly refundedMinor: number
  /** The dispute about it, if there is one. */
  readonly dispute: string | null
}

/** An amount to be invoiced; on an invoice it is a line. */
export interface InvoiceItemRecord {
  readonly id: string
  readonly seq: number
  readonly createdS: number
  readonly lineId: string
  readonly customer: string
  /** Null while it waits for an invoice. */
  readonly invoice: string | null
  readonly amountMinor: number
  readonly quantity: number
  readonly currency: string
  readonly description: string | null
  readonly periodStartS: number
  readonly periodEndS: number
  readonly metadata: MetadataRecord
}

/** An invoice. Its lines are the items that name it. */
export interface InvoiceRecord {
  readonly id: string
  readonly seq: number
  readonly createdS: number
  readonly status: "draft" | "open" | "paid" | "uncollectible" | "void"
  readonly customer: string
  readonly currency: string
  readonly collection: "charge_automatically" | "send_invoice"
  readonly autoAdvance: boolean
  readonly finalizesAtS: number | null
  readonly nextAttemptS: number | null
  readonly attempts: number
  readonly dueS: number | null
  readonly daysUntilDue: number | null
  readonly number: string | null
  readonly description: string | null
  readonly footer: string | null
  readonly statementDescriptor: string | null
  readonly defaultPaymentMethod: string | null
  readonly metadata: MetadataRecord
  /** The sum of the lines once finalized; before, the lines say it. */
  readonly totalMinor: number | null
  /** The customer's balance that was taken into account, once finalized. */
  readonly startingBalanceMinor: number | null
  readonly paidMinor: number
  readonly paidOffStripe: boolean
  readonly paymentId: string
  readonly intent: string | null
  readonly finalizedS: number | null
  readonly paidS: number | null
  readonly voidedS: number | null
  readonly uncollectibleS: number | null
}

/** A dispute about a charge. An inquiry takes no money. */
export interface DisputeRecord {
  readonly id: string
  readonly seq: number
  readonly createdS: number
  readonly status:
    | "needs_response"
    | "under_review"
    | "won"
    | "lost"
    | "warning_needs_response"
    | "warning_under_review"
    | "warning_closed"
  readonly inquiry: boolean
  readonly reason: string
  readonly amountMinor: number
  readonly currency: string
  readonly charge: string
  readonly intent: string | null
  readonly evidence: string | null
  readonly submissions: number
  readonly dueS: number
  readonly metadata: MetadataRecord
}

/** A clock that stands still until it is advanced. */
export interface TestClockRecord {
  readonly id: string
  readonly seq: number
  readonly createdS: number
  readonly frozenS: number
  readonly name: string | null
}

/** Where events are sent. */
export interface EndpointRecord {
  readonly id: string
  readonly seq: number
  readonly createdS: number
  readonly url: string
  readonly secret: string
  readonly events: ReadonlyArray<string>
  readonly connect: boolean
  readonly disabled: boolean
  readonly description: string | null
  readonly metadata: MetadataRecord
}

/** A refund: part or all of a charge given back. */
export interface RefundRecord {
  readonly id: string
  readonly seq: number
  readonly createdS: number
  readonly status: "pending" | "succeeded" | "failed" | "canceled"
  readonly amountMinor: number
  readonly currency: string
  readonly charge: string
  readonly intent: string | null
  readonly reason: string | null
  readonly metadata: MetadataRecord
  readonly failureReason: string | null
}
