/** How a run of the steps that did not settle its charge leaves it. */
import type { ClaimedCharge, Ledger, LedgerError, PipelineError } from "@purser/core"
import { Cause, Effect, Result } from "effect"

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
    return Effect.ignore(failed.success._tag === "LedgerError" ? releaseLate(charge) : handBack(charge, handBackMs, failed.success.message))
  }
}
