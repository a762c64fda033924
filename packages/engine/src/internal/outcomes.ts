/** What the processor's object, or its certain refusal, means for a charge: outcomes as the ledger records them. */
import {
  Canceled, type ChargeErrorReason, type ChargeOutcome, checkedSucceeded, type ClaimedCharge, Declined, type GatewayPayment, type Lease, Processing, Rejected, RequiresAction,
  type SettleInput, wantsAuthentication
} from "@purser/core"

/** What became of a charge, as the ledger is told. */
export class Fact implements SettleInput {
  readonly lease: Lease
  readonly attempt: number
  readonly paymentIntentId: string | null
  readonly outcome: ChargeOutcome
  readonly pollAfterMs: number

  constructor({ attempt, lease }: ClaimedCharge, paymentIntentId: string | null, outcome: ChargeOutcome, pollAfterMs: number) {
    this.lease = lease
    this.attempt = attempt
    this.paymentIntentId = paymentIntentId
    this.outcome = outcome
    this.pollAfterMs = pollAfterMs
  }
}

/**
 * Whether the object's last refusal is the answer to this attempt: it names another failed charge than the last recorded
 * decline did. Without such evidence the attempt is asked again under its own key.
 */
export const isDeclinedNow = (charge: ClaimedCharge, { decline, status }: GatewayPayment): boolean =>
  status === "declined" && typeof decline?.chargeId === "string" && decline.chargeId !== charge.declinedChargeId

/** Whether a method was chosen that the waiting object does not hold: the customer need not authenticate the old one. */
export const holdsOtherMethod = (charge: ClaimedCharge, { paymentMethod }: GatewayPayment): boolean =>
  charge.paymentMethod !== null && typeof paymentMethod === "string" && paymentMethod !== charge.paymentMethod

/** The outcome of an object that decides; `undefined` for one that does not. */
export const outcomeOfPayment = (charge: ClaimedCharge, payment: GatewayPayment): ChargeOutcome | undefined => {
  const { chargeKey } = charge.lease
  const { amountReceivedMinor, chargeId, id: paymentIntentId, status } = payment
  // The amounts were compared with the charge's own before.
  if (status === "succeeded") return checkedSucceeded({ chargeKey, alreadySettled: false, paymentIntentId, chargeId, amountReceivedMinor })
  const common = { chargeKey, alreadySettled: false, paymentIntentId }
  switch (status) {
    case "processing":
      return new Processing(common)
    case "requires_action":
      return new RequiresAction({ ...common, detail: "the customer must authenticate" })
    case "declined": {
      const { adviceCode = null, chargeId = null, code, declineCode, detail } =
        payment.decline ?? { code: "card_declined", declineCode: null, detail: "declined" }
      return wantsAuthentication({ code, declineCode })
        ? new RequiresAction({ ...common, detail, declinedChargeId: chargeId })
        : new Declined({ ...common, code, declineCode, detail, adviceCode, declinedChargeId: chargeId })
    }
    case "canceled":
      return new Canceled({ ...common, detail: "canceled at the processor" })
    case "draft":
    case "unconfirmed":
      return undefined
  }
}

/** The outcome of a refusal that is certain; `undefined` for an error that is none. */
export const outcomeOfRefusal = (charge: ClaimedCharge, paymentIntentId: string | null, reason: ChargeErrorReason): ChargeOutcome | undefined => {
  const common = { chargeKey: charge.lease.chargeKey, alreadySettled: false }
  switch (reason._tag) {
    case "CardDeclined": {
      const { adviceCode, code, declineCode, declinedChargeId, detail } = reason
      return new Declined({ ...common, paymentIntentId, code, declineCode, adviceCode, declinedChargeId, detail })
    }
    case "AuthenticationRequired":
      return paymentIntentId === null
        ? undefined
        : new RequiresAction({ ...common, paymentIntentId, detail: reason.detail, declinedChargeId: reason.declinedChargeId })
    case "InvalidRequest":
      return new Rejected({ ...common, code: reason.code ?? "invalid_request", detail: reason.detail })
    case "PermissionDenied":
      return new Rejected({ ...common, code: "permission_denied", detail: reason.detail })
    default:
      return undefined
  }
}
