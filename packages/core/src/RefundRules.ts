/** What a request for a refund finds: the rule that both stores apply while they hold the charge's row. */
import { AlreadyRefunded, asAlreadyRefundSettled } from "./Refund.ts"
import type { RefundOutcome, RefundRequest } from "./Refund.ts"
import type { RefundClaimAnswer, RefundState } from "./RefundLedger.ts"
import type { ChargeState } from "./Ledger.ts"
import type { Movement } from "./Sightings.ts"

/** States in which the money went back, or may have. */
export const refundHoldsMoney = (state: RefundState): boolean =>
  state === "requested" || state === "pending" || state === "succeeded" || state === "already_refunded"

/** The payment that a refund is of: the object that was paid, and its charge where it has one. */
export interface RefundablePayment {
  readonly paymentIntentId: string | null
  readonly chargeId: string | null
}

/** States, in the processor's words, in which a refund made elsewhere holds money, and in which the money is back. */
const holdsElsewhere: ReadonlyArray<string> = ["succeeded", "pending", "requires_action"]

/** What went back of one payment without the book's doing, and what of that is over. In minor units. */
export interface RefundedElsewhere {
  readonly heldMinor: number
  readonly succeededMinor: number
}

/** Sums the refunds of this payment that were seen at the processor; those that the book made (`ours`, by their ids there) are the book's. */
export const refundedElsewhere = (movements: ReadonlyArray<Movement>, payment: RefundablePayment, ours: ReadonlySet<string>): RefundedElsewhere => {
  const ids = [payment.paymentIntentId, payment.chargeId].filter((id) => id !== null)
  const seen = movements.filter(({ chargeId, id, kind, paymentIntentId }) =>
    kind === "refund" && !ours.has(id) && ids.some((own) => own === paymentIntentId || own === chargeId))
  const sum = (states: ReadonlyArray<string>) =>
    seen.filter(({ status }) => states.includes(status)).reduce((total, { amountMinor }) => total + amountMinor, 0)
  return { heldMinor: sum(holdsElsewhere), succeededMinor: sum(["succeeded"]) }
}

/** What is left of a payment: never less than nothing. In minor units. */
export const refundLeftMinor = (charge: Pick<RefundedCharge, "receivedMinor" | "heldMinor" | "elsewhereMinor">): number =>
  Math.max(0, charge.receivedMinor - charge.heldMinor - charge.elsewhereMinor)

/**
 * The payment as it stands under the lock of the charge's row; `heldMinor` is what was refunded, or may have been, by the
 * book's refunds of it, `elsewhereMinor` by others.
 */
export interface RefundedCharge {
  readonly state: ChargeState
  readonly receivedMinor: number
  readonly heldMinor: number
  readonly elsewhereMinor: number
}

/** The refund as it stands under the lock. */
export interface StoredRefund {
  readonly state: RefundState
  readonly amountMinor: number
  readonly leaseLeftMs: number
  readonly outcome: RefundOutcome | null
}

/** `Take`: the row is there and free. `Insert`: it is to be made with this amount. `Again`: an explicit act moves its attempt. */
export type RefundDecision =
  | { readonly _tag: "Take" }
  | { readonly _tag: "Insert" | "Again"; readonly amountMinor: number }
  | { readonly _tag: "Answer"; readonly answer: Exclude<RefundClaimAnswer, { readonly _tag: "Claimed" }> }

/** Decides; the caller holds the charge's row, so that nothing changes in between. */
export const decideRefund = (
  request: RefundRequest,
  charge: RefundedCharge | undefined,
  stored: StoredRefund | undefined
): RefundDecision => {
  const answer = (given: Exclude<RefundClaimAnswer, { readonly _tag: "Claimed" }>): RefundDecision => ({ _tag: "Answer", answer: given })
  if (charge === undefined) return answer({ _tag: "NotPaid", state: null })
  const asked = request.amountMinor
  if (stored !== undefined) {
    if (asked !== null && asked !== stored.amountMinor) {
      return answer({ _tag: "Conflict", expectedMinor: stored.amountMinor, actualMinor: asked })
    }
    const again = request.again === true && stored.state === "refused"
    if (!again && stored.state !== "requested" && stored.outcome !== null) {
      return answer({ _tag: "AlreadySettled", outcome: asAlreadyRefundSettled(stored.outcome) })
    }
    if (!again) return stored.leaseLeftMs > 0 ? answer({ _tag: "InProgress", leaseLeftMs: stored.leaseLeftMs }) : { _tag: "Take" }
  }
  // A payment that is named is one beside the row's own, whatever became of the row.
  if (charge.state !== "succeeded" && request.payment === undefined) return answer({ _tag: "NotPaid", state: charge.state })
  const leftMinor = refundLeftMinor(charge)
  if (stored === undefined && asked === null && charge.elsewhereMinor > 0 && charge.elsewhereMinor >= charge.receivedMinor) {
    // As when the processor says so: it counts as done. Nothing is stored, since nothing was asked for.
    const { chargeKey, refundKey } = request
    const outcome = new AlreadyRefunded({ refundKey, chargeKey, amountMinor: charge.receivedMinor, alreadySettled: true, detail: "all of it was given back elsewhere" })
    return answer({ _tag: "AlreadySettled", outcome })
  }
  const amountMinor = stored?.amountMinor ?? asked ?? leftMinor
  if (amountMinor > leftMinor || amountMinor <= 0) {
    const { elsewhereMinor, receivedMinor } = charge
    return answer({ _tag: "TooLarge", requestedMinor: asked ?? amountMinor, leftMinor, receivedMinor, elsewhereMinor })
  }
  return { _tag: stored === undefined ? "Insert" : "Again", amountMinor }
}

/**
 * Whether a fact may be written over what stands there. Evidence (an object of the processor) is true whoever brings it;
 * what has failed or was refunded by others stays so, and a success gives way only to the news that it came back.
 */
export const mayRecordRefund = (from: RefundState, to: RefundOutcome["_tag"], ours: boolean): boolean => {
  const isOpen = from === "requested" || from === "pending"
  if (to === "Refunded") return from !== "succeeded" && from !== "failed"
  if (to === "RefundFailed") return isOpen || from === "succeeded"
  if (to === "RefundPending") return isOpen && (ours || from === "requested")
  return from === "requested" && ours
}

/** The state that an outcome leaves. */
export const refundStateOf: Record<RefundOutcome["_tag"], RefundState> = {
  Refunded: "succeeded",
  RefundPending: "pending",
  RefundFailed: "failed",
  AlreadyRefunded: "already_refunded",
  RefundRefused: "refused"
}
