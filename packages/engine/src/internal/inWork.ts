/** Requests that a process works on: a second delivery of one waits for the first, and answers as it does. */
import { ChargeInProgress, type ChargeKey, type ChargeOutcome, type ChargeRequest, chargeTerms, LedgerError, type PipelineError } from "@purser/core"
import { Cause, Deferred, Effect, Exit, Metric, Result } from "effect"
import { EngineMetrics } from "../EngineMetrics.ts"

type Charged = Effect.Effect<ChargeOutcome, PipelineError>

class Entry {
  readonly request: ChargeRequest
  /** Made by the first who waits. */
  done: Deferred.Deferred<ChargeOutcome, PipelineError> | undefined = undefined

  constructor(request: ChargeRequest) {
    this.request = request
  }
}

/** The requests in work, and the way into them. */
export interface InWork {
  readonly size: () => number
  /** The work of a request, once for all equal ones that come while it lasts. */
  readonly share: (request: ChargeRequest, work: () => Charged) => Charged
}

const sameTerms = (a: ChargeRequest, b: ChargeRequest) => JSON.stringify(chargeTerms(a)) === JSON.stringify(chargeTerms(b))

const counted = (exit: Exit.Exit<ChargeOutcome, PipelineError>) => {
  const failed = Exit.isFailure(exit) ? Cause.findError(exit.cause) : undefined
  return failed !== undefined && Result.isSuccess(failed) ? Metric.update(EngineMetrics.unsettled.of(failed.success.reason._tag), 1) : undefined
}

/** Nobody is in work yet. */
export const makeInWork = (): InWork => {
  const entries = new Map<ChargeKey, Entry>()

  const ended = (chargeKey: ChargeKey, entry: Entry, exit: Exit.Exit<ChargeOutcome, PipelineError>): Effect.Effect<void> | undefined => {
    entries.delete(chargeKey)
    const count = counted(exit)
    const { done } = entry
    if (done === undefined) return count
    // A delivery that waits here must not die with the one that was interrupted.
    const told = Deferred.done(done, Exit.hasInterrupts(exit)
      ? Exit.fail(new LedgerError({ reason: new ChargeInProgress({ leaseLeftMs: 0 }), chargeKey }))
      : exit)
    return count === undefined ? Effect.asVoid(told) : Effect.andThen(count, told)
  }

  return {
    size: () => entries.size,
    share: (request, work) => {
      const { chargeKey } = request
      let entry: Entry | undefined
      // Entered within what takes it out again: a fiber may be stopped between any two effects.
      return Effect.onExitPrimitive(
        Effect.suspend(() => {
          const sibling = entries.get(chargeKey)
          if (sibling === undefined) {
            entries.set(chargeKey, entry = new Entry(request))
            return work()
          }
          if (!sameTerms(sibling.request, request)) return work()
          sibling.done ??= Deferred.makeUnsafe<ChargeOutcome, PipelineError>()
          return Effect.andThen(Metric.update(EngineMetrics.redeliveries.of("joined"), 1), Deferred.await(sibling.done))
        }),
        (exit) => entry === undefined ? undefined : ended(chargeKey, entry, exit)
      )
    }
  }
}
