/** What is looked at before a request is taken up: whether its period has begun, and under which key its sender knows it. */
import { ChargeError, type ChargeKey, type ChargeRequest, InvalidRequest, periodHasBegun } from "@purser/core"
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
