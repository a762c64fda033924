/**
 * Another attempt of a charge that ended unpaid: the one way there is, for people, for `purser retry --due` and for dunning.
 *
 * The attempt's number is the ledger's, and moves only from a definitive refusal that is recorded: no attempt can be asked
 * for while another one is undecided.
 */
import { type ChargeOutcome, type ChargeRecord, Ledger, type PipelineError } from "@purser/core"
import { Effect } from "effect"
import { ChargePipeline } from "./ChargePipeline.ts"

/** States that another attempt may leave. */
export type RetryableState = "declined" | "rejected" | "requires_action"

/** Whether a charge in this state may be asked for again. */
export const isRetryableState = (state: ChargeRecord["state"]): state is RetryableState =>
  state === "declined" || state === "rejected" || state === "requires_action"

/** Who asks again, why, and with what. */
export interface RetryAct {
  readonly actor: string
  readonly reason: string
  readonly paymentMethod?: string | undefined
}

/** Moves the charge from the attempt that the record shows to the next, and charges it; `undefined` when others were faster. */
export const retryCharge = Effect.fn("retryCharge")(function*(
  record: ChargeRecord,
  { actor, paymentMethod, reason }: RetryAct
): Effect.fn.Return<ChargeOutcome | undefined, PipelineError, Ledger | ChargePipeline> {
  const { attempt, chargeKey, request, state } = record
  if (!isRetryableState(state)) return undefined
  const ledger = yield* Ledger
  const pipeline = yield* ChargePipeline
  // The room of the old attempt goes back before the new one asks for its own.
  yield* pipeline.releaseDue(1000)
  const moved = yield* ledger.reopen({
    chargeKeys: [chargeKey], from: [state], attempt, actor, reason, ...(paymentMethod === undefined ? {} : { paymentMethod })
  })
  return moved === 0 ? undefined : yield* pipeline.charge(request)
})
