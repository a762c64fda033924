/**
 * Another attempt of a charge that ended unpaid: the one way there is, for people, for `purser retry --due` and for dunning; `retryRows` is the same for
 * the rows of a run.
 *
 * The attempt's number is the ledger's, and moves only from a definitive refusal that is recorded: no attempt can be asked
 * for while another one is undecided. Nor does it move without room under the cap: a cap that is full or closed refuses no charge
 * for good that is only asked for again.
 */
import { type ChargeOutcome, type ChargeRecord, type Ledger, type PipelineError, type SpendCap, SpendCapError } from "@purser/core"
import { Effect } from "effect"
import { ChargePipeline } from "./ChargePipeline.ts"
import { reopenInRoom } from "./internal/reopenInRoom.ts"

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

/** Whether this is the cap's refusal: no room, no cap, or a closed one. The charge stands as it stood. */
export const isNoRoom = (error: object): error is SpendCapError => error instanceof SpendCapError && error.reason._tag !== "CapUnavailable"

/**
 * Moves the charge from the attempt that the record shows to the next, and charges it; `undefined` when others were faster. Without
 * room for the next attempt it fails with the cap's refusal, and the charge stands as it stood.
 */
export const retryCharge = Effect.fn("retryCharge")(function*(
  record: ChargeRecord,
  act: RetryAct
): Effect.fn.Return<ChargeOutcome | undefined, PipelineError, Ledger | ChargePipeline | SpendCap> {
  const { attempt, chargeKey, request, state } = record
  if (!isRetryableState(state)) return undefined
  const pipeline = yield* ChargePipeline
  // The room of the old attempt goes back before the new one asks for its own.
  yield* pipeline.releaseDue(1000)
  const { asked: [asked], withoutRoom: [refused] } = yield* reopenInRoom([{ attempt, chargeKey, request, state }], act)
  if (refused !== undefined) return yield* refused.error
  if (asked !== undefined && asked.moved > 0) return yield* pipeline.charge(request)
  // The room is theirs who moved the row, but where their attempt has come to its end unpaid.
  yield* pipeline.releaseUnpaid(chargeKey)
  return undefined
})
