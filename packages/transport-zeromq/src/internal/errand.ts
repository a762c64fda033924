/**
 * One request on its way through a window: in which phase of which attempt it is, and what to say when its attempts are
 * used up. Troubles of the transport are tried again; an error of the worker is an answer.
 */
import { RetriesExhausted, type TransportError, type TransportErrorReason } from "@purser/core"
import { Duration, Effect, Exit, type Pull, Result, Schedule } from "effect"

/** `queued` for room in the window, `waiting` to be sent, `sent`, `resting` before the next attempt, or `over`. */
export type Phase = "queued" | "waiting" | "sent" | "resting" | "over"

/** What comes back for a request: a value, an error of the worker, or a trouble of the transport. */
export type ReplyOf<A, E> = Result.Result<A, E | TransportError>

/** Who waits for answers: a function for each errand would cost as much memory as the errand. */
export interface Asker<A, E> {
  readonly done: (reply: ReplyOf<A, E>, index: number) => void
}

/** A fiber that waits for one answer. */
export class Caller<A, E> implements Asker<A, E> {
  readonly resume: (exit: Exit.Exit<A, E | TransportError>) => void

  constructor(resume: (exit: Exit.Exit<A, E | TransportError>) => void) {
    this.resume = resume
  }

  done(reply: ReplyOf<A, E>): void {
    this.resume(Result.isSuccess(reply) ? Exit.succeed(reply.success) : Exit.fail(reply.failure))
  }
}

const none: ReadonlyArray<TransportError> = []

/**
 * One request on its way, waiting for room when it is made.
 *
 * A class and no literal: where nearly all objects of a literal live through a collection, as the first ones in a window do,
 * the engine makes all later ones as old objects. What they hold outlives them then, until a collection of everything.
 */
export class Errand<Req, A, E> {
  /** Given with its place in the window. */
  id = ""
  readonly request: Req
  /** The span in which it was asked, when somebody traces; the same at each attempt. */
  readonly traceparent: string | undefined
  /** Gets the answer, once. */
  readonly asker: Asker<A, E>
  /** Its place among the asker's. */
  readonly index: number
  /** Its place in the schedule; most errands are answered before they need one. */
  step: ((nowMs: number, input: unknown) => Pull.Pull<[unknown, Duration.Duration], never, unknown>) | undefined = undefined
  /** Servers' refusals, at most one an attempt. */
  refusals = none
  phase: Phase = "queued"
  /** Which life of the sockets sent it last. */
  sentBy: object | undefined = undefined
  /** Whether it is on the list of what is sent next; one that expired there is on it still. */
  listed = false
  attempts = 1
  /** When the attempt, or the rest, is over. */
  dueMs = 0
  /** What its frame says of the time that is left, from sending on. */
  deadlineMs = 0

  constructor(request: Req, traceparent: string | undefined, asker: Asker<A, E>, index = 0) {
    this.request = request
    this.traceparent = traceparent
    this.asker = asker
    this.index = index
  }
}

/** What to say of an errand whose attempts are used up. Only when each was refused is it known what came of them. */
const verdict = ({ attempts, refusals }: { readonly attempts: number; readonly refusals: ReadonlyArray<TransportError> }, endpoint: string): TransportErrorReason =>
  refusals.length < attempts
    ? new RetriesExhausted({ endpoint, attempts })
    : (refusals.find(({ outcome }) => outcome === "unknown") ?? refusals[refusals.length - 1]!).reason

/** Ends an attempt: the errand rests as long as its schedule says, or `end` is told why it is over. */
export const restErrand = <Req, A, E>(
  errand: Errand<Req, A, E>,
  retry: Schedule.Schedule<unknown, unknown>,
  nowMs: number,
  endpoint: string,
  end: (reason: TransportErrorReason) => void
): Effect.Effect<void> =>
  Effect.gen(function*() {
    errand.step ??= yield* Schedule.toStep(retry)
    yield* Effect.match(errand.step(nowMs, undefined), {
      onFailure: () => end(verdict(errand, endpoint)),
      onSuccess: ([, delay]) => {
        if (errand.phase === "over") return
        errand.phase = "resting"
        errand.dueMs = nowMs + Duration.toMillis(delay)
      }
    })
  })
