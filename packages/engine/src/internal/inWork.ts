/** Requests that a process works on: a second delivery of one waits for the first, and answers as it does. */
import { ChargeInProgress, type ChargeKey, type ChargeOutcome, type ChargeRequest, chargeTerms, LedgerError, type PipelineError, type Stopwatch } from "@purser/core"
import { Cause, Deferred, Effect, Exit, Fiber, Metric, Result } from "effect"
import { EngineMetrics } from "../EngineMetrics.ts"
import type { Noting } from "./underItsRun.ts"

type Charged = Effect.Effect<ChargeOutcome, PipelineError>

/** A request in work. */
export class Entry {
  readonly request: ChargeRequest
  /** Made by the first who waits. */
  done: Deferred.Deferred<ChargeOutcome, PipelineError> | undefined = undefined
  private noting: Noting<PipelineError> | undefined = undefined

  constructor(request: ChargeRequest) {
    this.request = request
  }

  /** From now on, within the frame of the request: every charge passes here, and one of its own would be dearer than most steps. */
  note(noting: Noting<PipelineError>): void {
    this.noting = noting
    noting.begin(Fiber.getCurrent()!)
  }

  /** What was noted is no more. */
  left(exit: Exit.Exit<ChargeOutcome, PipelineError>): Effect.Effect<void> | undefined {
    const { noting } = this
    // One that has grown old would keep what came after it until all of memory is looked through.
    this.noting = undefined
    return noting?.end(exit)
  }
}

/** What is done for a request that came at a time; it is told when that began, where somebody measures. */
type Work = (request: ChargeRequest, nowMs: number, entry: Entry | undefined, sinceNanos?: number) => Charged

/** The requests in work, and the way into them. */
export interface InWork {
  readonly size: () => number
  /** The work of a request, once for all equal ones that come while it lasts. It is given its entry, unless another's terms are in work. */
  readonly share: (request: ChargeRequest, nowMs: number, work: Work) => Charged
  /** The answer to a request that is not taken up. */
  readonly refuse: (refusal: PipelineError) => Charged
}

const sameTerms = (a: ChargeRequest, b: ChargeRequest) => JSON.stringify(chargeTerms(a)) === JSON.stringify(chargeTerms(b))

const counted = (exit: Exit.Exit<ChargeOutcome, PipelineError>) => {
  const failed = Exit.isFailure(exit) ? Cause.findError(exit.cause) : undefined
  return failed !== undefined && Result.isSuccess(failed) ? Metric.update(EngineMetrics.unsettled.of(failed.success.reason._tag), 1) : undefined
}

/** Nobody is in work yet. `whole` has how long each request is, whatever comes of it. */
export const makeInWork = (whole?: Stopwatch): InWork => {
  const entries = new Map<ChargeKey, Entry>()

  const ended = (chargeKey: ChargeKey, entry: Entry | undefined, exit: Exit.Exit<ChargeOutcome, PipelineError>, sinceNanos: number | undefined): Effect.Effect<void> | undefined => {
    if (sinceNanos !== undefined) whole?.ended(sinceNanos)
    if (entry === undefined) return undefined
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
    refuse: (refusal) => {
      whole?.ended(whole.now())
      return Effect.fail(refusal)
    },
    share: (request, nowMs, work) => {
      const { chargeKey } = request
      let entry: Entry | undefined
      let sinceNanos: number | undefined
      // Entered within what takes it out again: a fiber may be stopped between any two effects.
      return Effect.onExitPrimitive(
        Effect.suspend(() => {
          if (whole !== undefined) sinceNanos = whole.now()
          const sibling = entries.get(chargeKey)
          if (sibling === undefined) {
            entries.set(chargeKey, entry = new Entry(request))
            return work(request, nowMs, entry, sinceNanos)
          }
          if (!sameTerms(sibling.request, request)) return work(request, nowMs, undefined, sinceNanos)
          sibling.done ??= Deferred.makeUnsafe<ChargeOutcome, PipelineError>()
          return Effect.andThen(Metric.update(EngineMetrics.redeliveries.of("joined"), 1), Deferred.await(sibling.done))
        }),
        (exit) => {
          const left = entry?.left(exit)
          if (left !== undefined) return Effect.onExitPrimitive(left, () => ended(chargeKey, entry, exit, sinceNanos))
          return ended(chargeKey, entry, exit, sinceNanos)
        }
      )
    }
  }
}
