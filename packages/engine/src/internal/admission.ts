/** What is looked at before a request is taken up: whether its period has begun, under which key its sender knows it, and what a claim says that was not won. */
import {
  ChargeConflict, ChargeError, ChargeInProgress, type ChargeKey, type ChargeOutcome, ChargeQuarantined, type ChargeRequest, type ClaimAnswer, InvalidRequest, LedgerError, type LedgerErrorReason,
  periodHasBegun, type PipelineError, RevisionNotOpened
} from "@purser/core"
import { Effect, Metric } from "effect"
import { EngineMetrics } from "../EngineMetrics.ts"

/** Why the request is not taken up at this moment; `undefined` when it is. */
export const refusalOf = (request: ChargeRequest, nowMs: number): ChargeError | undefined =>
  request.allowFuture === true || periodHasBegun(request.billingPeriod, nowMs)
    ? undefined
    : new ChargeError({
      reason: new InvalidRequest({
        param: "billing_period",
        code: "period_not_begun",
        detail: `${request.billingPeriod} has not begun, and the request does not allow that`
      }),
      chargeKey: request.chargeKey,
      requestId: null
    })

/** The sender's key is ours, or there is none. */
export const knowsOurKey = ({ chargeKey, senderKey }: ChargeRequest): boolean => senderKey === undefined || senderKey === chargeKey

/** Another key of the sender's is counted, and not used. */
export const noteForeignKey = (chargeKey: ChargeKey): Effect.Effect<void> =>
  Effect.andThen(
    Metric.update(EngineMetrics.foreignKeys, 1),
    Effect.annotateLogs(Effect.logInfo("the sender's idempotency key differs from ours; ours is used"), { chargeKey })
  )

/** The recorded outcome, or why there is none to be had here. */
export const unclaimed = Effect.fnUntraced(function*(chargeKey: ChargeKey, answer: Exclude<ClaimAnswer, { readonly _tag: "Claimed" }>): Effect.fn.Return<ChargeOutcome, PipelineError> {
  const failure = (reason: LedgerErrorReason) => new LedgerError({ reason, chargeKey })
  switch (answer._tag) {
    case "AlreadySettled":
      yield* Metric.update(EngineMetrics.redeliveries.of("settled"), 1)
      return answer.outcome
    case "InProgress":
      yield* Metric.update(EngineMetrics.redeliveries.of("held"), 1)
      return yield* failure(new ChargeInProgress({ leaseLeftMs: answer.leaseLeftMs }))
    case "Quarantined":
      return yield* failure(new ChargeQuarantined({ detail: answer.detail }))
    case "Unopened":
      return yield* failure(new RevisionNotOpened())
    case "Conflict":
      return yield* failure(new ChargeConflict({ expected: answer.expected, actual: answer.actual }))
  }
})
