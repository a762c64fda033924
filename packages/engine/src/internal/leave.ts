/** How a run of the steps that did not settle its charge leaves it. */
import type { ClaimedCharge, Ledger, LedgerError, PipelineError } from "@purser/core"
import { Cause, Effect, Result } from "effect"

/**
 * So often an attempt is taken up before its age counts: what stands in its way is mostly over soon, also where the charge was first claimed weeks before and is
 * asked for once more. Each that takes a charge up has the next epoch, which goes on through all attempts.
 */
const soonTakes = 10
/** After that it waits for this part of its age, so that it is tried soon after what passes within minutes, and gets few lines from what does not. */
const ofAge = 1 / 20
/**
 * The longest wait: how long a charge may lie when what stood in its way is gone, against the lines that it gets meanwhile. Two come of each try: some two
 * thousand in a week.
 */
const longestMs = 600_000

/** How long others leave a charge alone that is handed back undecided. A setting that is longer holds. */
export const handBackAfterMs = (handBackMs: number, { attempt, lease, sinceFirstClaimMs }: Pick<ClaimedCharge, "attempt" | "lease" | "sinceFirstClaimMs">): number =>
  lease.epoch <= soonTakes * attempt ? handBackMs : Math.max(handBackMs, Math.min(longestMs, Math.round(sinceFirstClaimMs * ofAge)))

/**
 * Others may go on after a while, and at once when this worker is being stopped. Where they have done so already, and have settled the charge unpaid, room that was
 * taken here since is nobody's: `releaseLate` gives it back.
 */
export const makeLeave = (ledger: Ledger["Service"], handBackMs: number, releaseLate: (charge: ClaimedCharge) => Effect.Effect<void, PipelineError>) => {
  const handBack = (charge: ClaimedCharge, afterMs: number, detail: string): Effect.Effect<void, LedgerError | PipelineError> =>
    Effect.flatMap(ledger.handBack(charge.lease, afterMs, detail), (ours) => ours ? Effect.void : releaseLate(charge))

  return (charge: ClaimedCharge, cause: Cause.Cause<PipelineError>): Effect.Effect<void> | undefined => {
    if (Cause.hasInterrupts(cause)) return Effect.ignore(handBack(charge, 0, "the worker was stopped"))
    const failed = Cause.findError(cause)
    if (Result.isFailure(failed)) return undefined
    return Effect.ignore(failed.success._tag === "LedgerError"
      ? releaseLate(charge)
      : handBack(charge, handBackAfterMs(handBackMs, charge), failed.success.message))
  }
}
