/**
 * Billing an identity anew after its payment was given back: an explicit act that opens the next revision, with a charge
 * key of its own, linked to the charge before it. A plain rerun never does that; it finds the first charge settled.
 */
import type { ChargeKey } from "./ChargeKey.ts"
import { ChargeRequest, type ChargeTerms, chargeTerms } from "./ChargeRequest.ts"
import type { ChargeState } from "./Ledger.ts"
import type { AmountMinor } from "./Money.ts"

/** What is wished for. Left out, the Stripe customer and the method are those of the charge before. */
export interface RebillInput {
  /** The first charge of the identity; the newest revision is found from it. */
  readonly chargeKey: ChargeKey
  readonly amountMinor: AmountMinor
  readonly stripeCustomerId?: string
  readonly paymentMethod?: string
  readonly actor: string
  readonly reason: string
  /** Bill anew though the ledger knows of no refund, or only of a part: somebody has decided that. */
  readonly unrefunded?: boolean
}

/** What came of it. `Present`: this revision had been opened with the same terms; it is the same act once more. */
export type RebillAnswer =
  | { readonly _tag: "Opened"; readonly request: ChargeRequest; readonly revises: ChargeKey }
  | { readonly _tag: "Present"; readonly request: ChargeRequest; readonly revises: ChargeKey }
  | { readonly _tag: "NotPaid"; readonly state: ChargeState | null }
  | { readonly _tag: "NotRefunded"; readonly receivedMinor: number; readonly refundedMinor: number }
  | { readonly _tag: "Conflict"; readonly expected: ChargeTerms; readonly actual: ChargeTerms }

/** The newest revision as it stands under the lock. */
export interface RebilledCharge {
  readonly chargeKey: ChargeKey
  readonly request: ChargeRequest
  readonly state: ChargeState
  readonly revises: ChargeKey | null
  readonly receivedMinor: number
  /** What is known to have gone back; all of it when others have refunded the rest. */
  readonly refundedMinor: number
}

/** The request of the next revision. */
export const revisionOf = (last: RebilledCharge, input: RebillInput): ChargeRequest => {
  const { senderKey: _, paymentMethod, ...same } = last.request
  const method = input.paymentMethod ?? paymentMethod
  return new ChargeRequest({
    ...same,
    amountMinor: input.amountMinor,
    stripeCustomerId: input.stripeCustomerId ?? same.stripeCustomerId,
    ...(method === undefined ? {} : { paymentMethod: method }),
    revision: (same.revision ?? 0) + 1
  })
}

/** Decides; the caller holds the newest revision's row. `Open` is to be stored as planned. */
export const decideRebill = (
  last: RebilledCharge | undefined,
  input: RebillInput
): RebillAnswer | { readonly _tag: "Open"; readonly request: ChargeRequest; readonly revises: ChargeKey } => {
  if (last === undefined) return { _tag: "NotPaid", state: null }
  const isRefunded = last.state === "succeeded" && last.refundedMinor >= last.receivedMinor
  if (!isRefunded && last.revises !== null) {
    // It may be this act once more: the same terms are the same revision.
    const expected = chargeTerms(last.request)
    const actual = chargeTerms(revisionOf(last, input))
    if (JSON.stringify(expected) === JSON.stringify(actual)) return { _tag: "Present", request: last.request, revises: last.revises }
    if (last.state !== "succeeded") return { _tag: "Conflict", expected, actual }
  }
  if (last.state !== "succeeded") return { _tag: "NotPaid", state: last.state }
  if (!isRefunded && input.unrefunded !== true) {
    return { _tag: "NotRefunded", receivedMinor: last.receivedMinor, refundedMinor: last.refundedMinor }
  }
  return { _tag: "Open", request: revisionOf(last, input), revises: last.chargeKey }
}
