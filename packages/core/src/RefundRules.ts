/** What a request for a refund finds: the rule that both stores apply while they hold the charge's row. */
import { asAlreadyRefundSettled } from "./Refund.ts"
import type { RefundOutcome, RefundRequest } from "./Refund.ts"
import type { RefundClaimAnswer, RefundState } from "./RefundLedger.ts"
import type { ChargeState } from "./Ledger.ts"

/** States in which the money went back, or may have. */
export const refundHoldsMoney = (state: RefundState): boolean =>
  state === "requested" || state === "pending" || state === "succeeded" || state === "already_refunded"

/** The charge as it stands under the lock; `heldMinor` is what was refunded, or may have been, by all its refunds. */
export interface RefundedCharge {
  readonly state: ChargeState
  readonly receivedMinor: number
  readonly heldMinor: number
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
  if (charge.state !== "succeeded") return answer({ _tag: "NotPaid", state: charge.state })
  const leftMinor = charge.receivedMinor - charge.heldMinor
  const amountMinor = stored?.amountMinor ?? asked ?? leftMinor
  if (amountMinor > leftMinor || amountMinor <= 0) {
    return answer({ _tag: "TooLarge", requestedMinor: asked ?? amountMinor, leftMinor, receivedMinor: charge.receivedMinor })
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
