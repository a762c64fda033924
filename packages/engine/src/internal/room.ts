/** The room of a charge under the cap: taken before money is asked for, given back where none moved, and taken back for a payment that was found late. */
import { type ChargeKey, type ChargeRecord, type ClaimedCharge, type FaultHook, type Ledger, Money, movedNothing, type SpendCap } from "@purser/core"
import { Effect, Metric, Result } from "effect"
import { EngineMetrics } from "../EngineMetrics.ts"
import type { PipelineSettings } from "../PipelineOptions.ts"
import { untilStoreAnswers } from "./backoff.ts"
import type { Steps, Turn } from "./steps.ts"

interface Parts {
  readonly cap: SpendCap["Service"]
  readonly fault: FaultHook
  readonly ledger: Ledger["Service"]
  readonly settings: PipelineSettings
  readonly step: Steps["step"]
}

const reservationOf = ({ attempt, lease: { chargeKey }, request: { amountMinor, billingPeriod, currency, namespace } }: ClaimedCharge) =>
  ({ namespace, billingPeriod, currency, chargeKey, attempt, amountMinor })

const codes = { CapExceeded: "cap_exceeded", CapMissing: "cap_missing", CapClosed: "cap_closed", CapAlreadyOpen: "cap_already_open" } as const

/** Over the stores of a pipeline. */
export const makeRoom = ({ cap, fault, ledger, settings, step }: Parts) => {
  const release = Effect.fnUntraced(function*(chargeKey: ChargeKey, attempt: number) {
    yield* step("release", Effect.andThen(cap.release(chargeKey, attempt), ledger.markReleased(chargeKey, attempt)))
    yield* fault("after-release", chargeKey)
  })

  /**
   * Room that was taken after others had settled the charge unpaid and given its room back: nobody else would return it. At whatever
   * attempt the row ended: who asks for the next one has reserved for that, and keeps it.
   */
  const releaseEnded = (row: ChargeRecord | undefined) =>
    row !== undefined && row.outcome !== null && movedNothing(row.outcome) ? untilStoreAnswers(settings, release(row.chargeKey, row.attempt)) : Effect.void
  const releaseLate = ({ lease }: ClaimedCharge) => Effect.flatMap(ledger.find(lease.chargeKey), releaseEnded)

  /** A payment found late may have lost its room: take it back whatever the cap says, and be loud. Nobody asks for it later: it is worth some patience. */
  const holdLate = Effect.fnUntraced(function*(charge: ClaimedCharge) {
    const { request } = charge
    const unable = (error: { readonly message: string }) => Effect.as(Effect.logError(`a payment holds no room under the cap: ${error.message}`), 0n)
    const asked = Effect.catchIf(cap.reserveByForce(reservationOf(charge)), (error) => !error.isRetryable, unable)
    const over = yield* Effect.catch(untilStoreAnswers(settings, asked), unable)
    if (over > 0n) {
      yield* Metric.update(EngineMetrics.overruns, 1)
      yield* Effect.logError(`${request.billingPeriod} ${request.currency} is ${Money.text(over, request.currency)} over its cap`)
    }
  })

  /** Takes it; `undefined` when it was taken, else why it was refused. */
  const take = Effect.fnUntraced(function*(charge: ClaimedCharge, turn: Turn) {
    const taken = yield* Effect.result(turn.begin("reserve", cap.reserve(reservationOf(charge))))
    turn.end()
    yield* fault("after-reserve", charge.lease.chargeKey)
    if (Result.isSuccess(taken)) return undefined
    const { reason } = taken.failure
    if (reason._tag === "CapUnavailable") return yield* taken.failure
    return { code: codes[reason._tag], detail: reason.message }
  })

  return { release, releaseEnded, releaseLate, holdLate, take }
}
