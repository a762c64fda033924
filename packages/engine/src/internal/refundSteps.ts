/**
 * One refund from what is known of it to what the processor's object says. After an unknown answer the payment's refunds
 * are looked through before anything is sent again, and it is sent again under the same key alone: this one call moves
 * money, and nothing but the key and the look-up stands between a repeat and a second refund.
 */
import {
  alreadyRefundedCode, ChargeError, type ClaimedRefund, type GatewayRefund, Money, type RefundGateway, type RefundOrder, UnexpectedAnswer
} from "@purser/core"
import { Effect, Result } from "effect"
import type { PipelineSettings } from "../PipelineOptions.ts"
import { isDefinitive, isSpentKey, startTries } from "./backoff.ts"

/** What the processor says: its object, or that nothing is left, or that it refuses. */
export type RefundEvidence =
  | { readonly _tag: "Object"; readonly refund: GatewayRefund }
  | { readonly _tag: "NothingLeft"; readonly detail: string }
  | { readonly _tag: "Refused"; readonly code: string; readonly detail: string }

/** The order of a claimed refund. */
export const refundOrderOf = (claimed: ClaimedRefund): RefundOrder => ({
  refundKey: claimed.lease.refundKey,
  chargeKey: claimed.chargeKey,
  namespace: claimed.namespace,
  refundId: claimed.refundId,
  attempt: claimed.attempt,
  paymentIntentId: claimed.paymentIntentId,
  chargeId: claimed.chargeId,
  amountMinor: claimed.amountMinor,
  currency: claimed.currency,
  reason: claimed.reason
})

const undecided = (claimed: ClaimedRefund, detail: string) =>
  new ChargeError({ reason: new UnexpectedAnswer({ operation: "refund", detail }), chargeKey: claimed.chargeKey, requestId: null })

const isDead = ({ status }: GatewayRefund) => status === "failed" || status === "canceled"

/** Of ours the one that counts; more than one that gives money back is an alarm. */
const theOne = Effect.fnUntraced(function*(ours: ReadonlyArray<GatewayRefund>) {
  const alive = ours.filter((refund) => !isDead(refund))
  if (alive.length > 1) yield* Effect.logError(`${alive.map(({ id }) => id).join(" and ")} are one refund, made more than once`)
  return alive.find(({ status }) => status === "succeeded") ?? alive[0] ?? ours[0]
})

/** An object of ours that is over something else proves nothing about this refund. */
const checked = (claimed: ClaimedRefund, refund: GatewayRefund): Effect.Effect<RefundEvidence, ChargeError> =>
  refund.amountMinor === claimed.amountMinor && refund.currency === claimed.currency
    ? Effect.succeed({ _tag: "Object", refund })
    : Effect.fail(undecided(claimed, `${refund.id} is over ${Money.text(refund.amountMinor, refund.currency)}, not ${Money.text(claimed.amountMinor, claimed.currency)}`))

/** Tries until the processor's object, or a refusal that leaves no doubt, decides; gives up with the last error. */
export const refundUntilKnown = Effect.fnUntraced(function*<E>(
  gateway: RefundGateway["Service"],
  settings: PipelineSettings,
  claimed: ClaimedRefund,
  steps: { readonly beforeCall: Effect.Effect<void, E>; readonly afterCall: Effect.Effect<void> }
): Effect.fn.Return<RefundEvidence, ChargeError | E> {
  const order = refundOrderOf(claimed)
  const nextTry = yield* startTries(settings)
  // What an earlier holder, or an earlier attempt, may have sent is looked for first.
  let look = claimed.resumed
  let unknownBefore = claimed.resumed
  for (;;) {
    const found: Result.Result<GatewayRefund | undefined, ChargeError> = look
      ? yield* Effect.result(Effect.flatMap(
        claimed.processorRefundId === null ? gateway.find(order) : Effect.map(gateway.retrieve(order, claimed.processorRefundId), (refund) => [refund]),
        theOne
      ))
      : Result.succeed(undefined)
    if (Result.isSuccess(found) && found.success !== undefined) return yield* checked(claimed, found.success)
    if (Result.isFailure(found)) {
      // That it cannot be looked for says nothing about the money.
      if (isDefinitive(found.failure)) return yield* undecided(claimed, `refunds of the payment cannot be read: ${found.failure.message}`)
      if (!(yield* nextTry(found.failure))) return yield* found.failure
      continue
    }
    yield* steps.beforeCall
    const made = yield* Effect.result(gateway.refund(order))
    yield* steps.afterCall
    if (Result.isSuccess(made)) return yield* checked(claimed, made.success)
    const { failure } = made
    const { reason } = failure
    if (isDefinitive(failure)) {
      if (reason._tag === "PermissionDenied" && unknownBefore) return yield* undecided(claimed, `an earlier call is undecided: ${failure.message}`)
      // Whatever was sent before, under this key or after it was forgotten, has left its object.
      const left = yield* theOne(yield* gateway.find(order).pipe(Effect.mapError((error) =>
        isDefinitive(error) ? undecided(claimed, `refunds of the payment cannot be read: ${error.message}`) : error)))
      if (left !== undefined && !isDead(left)) return yield* checked(claimed, left)
      if (reason._tag === "InvalidRequest" && reason.code === alreadyRefundedCode) return { _tag: "NothingLeft", detail: reason.detail }
      const code = reason._tag === "InvalidRequest" ? reason.code ?? "invalid_request" : reason._tag === "PermissionDenied" ? "permission_denied" : "refused"
      return { _tag: "Refused", code, detail: failure.message }
    }
    if (failure.outcome === "unknown") {
      look = true
      unknownBefore = true
    }
    // The stored answer of a spent key stays what it is until Stripe forgets it: waiting here is of no use.
    if (isSpentKey(failure)) {
      const left = yield* theOne(yield* gateway.find(order))
      return left === undefined ? yield* failure : yield* checked(claimed, left)
    }
    if (!(yield* nextTry(failure))) return yield* failure
  }
})
