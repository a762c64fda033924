/**
 * One request on its way through a window: in which phase of which attempt it is, and what to say when its attempts are
 * used up. Troubles of the transport are tried again; an error of the worker is an answer.
 */
import { type ChargeOutcome, type ChargeReply, type ChargeRequest, RetriesExhausted, type SubmitError, TransportError, type TransportErrorReason } from "@purser/core"
import { Deferred, Duration, Effect, Exit, type Pull, Result, Schedule } from "effect"

/** `waiting` to be sent, `sent`, or `resting` before the next attempt. */
export type Phase = "waiting" | "sent" | "resting"

/** One request on its way. */
export interface Errand {
  readonly id: string
  readonly request: ChargeRequest
  readonly answer: Deferred.Deferred<ChargeOutcome, SubmitError>
  /** Its place in the schedule; most errands are answered before they need one. */
  step: ((nowMs: number, input: unknown) => Pull.Pull<[unknown, Duration.Duration], never, unknown>) | undefined
  /** Servers' refusals, at most one an attempt. */
  readonly refusals: Array<TransportError>
  phase: Phase
  attempts: number
  /** When the attempt, or the rest, is over. */
  dueMs: number
}

/** Makes an errand whose first attempt begins now. */
export const makeErrand = (id: string, request: ChargeRequest, dueMs: number): Errand => ({
  id,
  request,
  answer: Deferred.makeUnsafe<ChargeOutcome, SubmitError>(),
  step: undefined,
  refusals: [],
  phase: "waiting",
  attempts: 1,
  dueMs
})

/** Ends an errand with an error of the transport. */
export const failErrand = (errand: Errand, reason: TransportErrorReason): void =>
  void Deferred.doneUnsafe(errand.answer, Exit.fail(new TransportError({ reason, chargeKey: errand.request.chargeKey })))

/** Takes a server's answer. A refusal that may be tried again is kept, and false is given: the attempt is over, the errand is not. */
export const takeReply = (errand: Errand, reply: ChargeReply): boolean => {
  if (Result.isFailure(reply) && reply.failure._tag === "TransportError" && reply.failure.isRetryable) {
    errand.refusals.push(reply.failure)
    return false
  }
  Deferred.doneUnsafe(errand.answer, Result.isSuccess(reply) ? Exit.succeed(reply.success) : Exit.fail(reply.failure))
  return true
}

/** What to say of an errand whose attempts are used up. Only when each was refused is it known what came of them. */
const verdict = ({ attempts, refusals }: Errand, endpoint: string): TransportErrorReason =>
  refusals.length < attempts
    ? new RetriesExhausted({ endpoint, attempts })
    : (refusals.find(({ outcome }) => outcome === "unknown") ?? refusals[refusals.length - 1]!).reason

/** Ends an attempt: the errand rests as long as its schedule says, or is over. */
export const restErrand = Effect.fnUntraced(function*(errand: Errand, retry: Schedule.Schedule<unknown, unknown>, nowMs: number, endpoint: string) {
  errand.step ??= yield* Schedule.toStep(retry)
  yield* Effect.match(errand.step(nowMs, undefined), {
    onFailure: () => failErrand(errand, verdict(errand, endpoint)),
    onSuccess: ([, delay]) => {
      errand.phase = "resting"
      errand.dueMs = nowMs + Duration.toMillis(delay)
    }
  })
})
