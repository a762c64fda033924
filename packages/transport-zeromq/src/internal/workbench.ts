/**
 * The requests that a service has taken: as many handlers run at a time as may, the others wait in order, each answer goes
 * to the outbox. A closing service begins nothing new, and what is cut short is answered with an unknown outcome.
 */
import { Backpressure, PeerLost, PeerUnreachable, Tracing, type TransportErrorReason } from "@purser/core"
import { Cause, Clock, type Context, Effect, Exit, type Fiber, Latch, Result } from "effect"
import { makeLine } from "./line.ts"
import type { Outbox, WayBack } from "./outbox.ts"
import type { ReplyApp, ReplyAsk, ReplyCall, ReplyOut } from "./replyApp.ts"

/** Limits of a workbench. */
export interface WorkbenchOptions {
  readonly label: string
  readonly concurrency: number
}

/** The work of a service. */
export interface Workbench<Req, Reply> {
  /** Requests that are not answered. */
  readonly taken: () => number
  readonly take: (back: WayBack, call: ReplyCall<Req, Reply>, context: Context.Context<never>) => void
  /** Refuses what has not begun, and begins nothing more. */
  readonly close: () => void
  /** Answers for what still runs, and interrupts it. */
  readonly cut: () => void
  /** Waits until everything is answered and the answers are sent, but no longer than the bound; tells whether they are. */
  readonly settle: (boundMs: number) => Effect.Effect<boolean>
}

/** One frame whose requests are being answered; a class and no literal for the same reason as an `Errand`. */
class Taken<Req, Reply> {
  readonly back: WayBack
  readonly call: ReplyCall<Req, Reply>
  readonly context: Context.Context<never>
  readonly atMs: number
  /** Answers that leave together, at their request's place. */
  readonly together: Array<ReplyOut<Reply>> | undefined
  left: number

  constructor(back: WayBack, call: ReplyCall<Req, Reply>, context: Context.Context<never>, atMs: number) {
    this.back = back
    this.call = call
    this.context = context
    this.atMs = atMs
    this.together = call.divisible && !back.whole ? undefined : []
    this.left = call.items.length
  }
}

class Job<Req, Reply> {
  readonly frame: Taken<Req, Reply>
  readonly index: number
  readonly ask: ReplyAsk<Req>
  readonly request: Req
  fiber: Fiber.Fiber<unknown, unknown> | undefined = undefined
  answered = false

  constructor(frame: Taken<Req, Reply>, index: number, ask: ReplyAsk<Req>, request: Req) {
    this.frame = frame
    this.index = index
    this.ask = ask
    this.request = request
  }
}

const defectOf = (defect: unknown) => defect
/** Calls the handler, which may throw. */
const begun = <Req, Reply, A, E>(app: ReplyApp<Req, Reply, A, E>, request: Req): Effect.Effect<A, E> => {
  const made = Result.try({ try: () => app.handle(request), catch: defectOf })
  return Result.isSuccess(made) ? made.success : Effect.die(made.failure)
}

/** Makes a workbench with nothing on it. */
export const makeWorkbench = <Req, Reply, A, E>(
  app: ReplyApp<Req, Reply, A, E>,
  outbox: Outbox<Reply>,
  { concurrency, label }: WorkbenchOptions
): Effect.Effect<Workbench<Req, Reply>> =>
  Effect.gen(function*() {
    const clock = yield* Clock.Clock
    const traces = yield* Tracing.isOn
    const idle = yield* Latch.make(false)
    const waiting = makeLine<Job<Req, Reply>>()
    const running = new Set<Job<Req, Reply>>()
    let taken = 0
    let closing = false

    const rest = () => {
      if (closing && taken === 0 && outbox.size() === 0) idle.openUnsafe()
    }
    outbox.onIdle = rest

    const answer = (frame: Taken<Req, Reply>, index: number, id: string, reply: Reply) => {
      taken--
      const last = --frame.left === 0
      if (frame.together === undefined) outbox.put(frame.back, { id, reply }, last)
      else {
        frame.together[index] = { id, reply }
        if (last) outbox.send(frame.back, frame.call.encode(frame.together), frame.back.ended === undefined ? [] : [frame.back.ended])
      }
    }
    const end = (job: Job<Req, Reply>, reply: Reply) => {
      if (job.answered) return
      job.answered = true
      answer(job.frame, job.index, job.ask.id, reply)
    }
    const refuse = (job: Job<Req, Reply>, reason: TransportErrorReason) => end(job, app.refusal(reason, job.request))
    const closed = new PeerUnreachable({ endpoint: label, detail: "the server is closing" })

    const ended = (job: Job<Req, Reply>, exit: Exit.Exit<A, E>) => {
      if (Exit.isSuccess(exit)) return end(job, app.success(exit.value))
      const error = Cause.findError(exit.cause)
      if (Result.isSuccess(error)) return end(job, app.failure(error.success))
      if (!job.answered) Effect.runForkWith(job.frame.context)(Effect.map(app.died(job.request, exit.cause), (reply) => end(job, reply)))
    }
    const start = (job: Job<Req, Reply>): void => {
      const { ask, frame, request } = job
      const effect = begun(app, request)
      // One that is done already needs no fiber.
      if (Exit.isExit(effect) && !traces) return ended(job, effect as Exit.Exit<A, E>)
      running.add(job)
      const fiber = Effect.runForkWith(frame.context)(traces ? Tracing.serving(app.span.name, ask.traceparent, effect, app.span.details(request)) : effect)
      job.fiber = fiber
      const exit = fiber.pollUnsafe()
      if (exit === undefined) return follow(job, fiber)
      running.delete(job)
      ended(job, exit)
    }
    const follow = (job: Job<Req, Reply>, fiber: Fiber.Fiber<A, E>): void => {
      fiber.addObserver((exit) => {
        running.delete(job)
        ended(job, exit)
        next()
      })
    }
    const next = () => {
      while (running.size < concurrency) {
        const job = waiting.take()
        if (job === undefined) return
        // Its sender has given up and asks again; doing the old request too would make a backlog endless.
        if (clock.currentTimeMillisUnsafe() - job.frame.atMs > Math.max(0, job.ask.deadlineMs)) refuse(job, new Backpressure({ endpoint: label, window: concurrency }))
        else start(job)
      }
    }

    return {
      taken: () => taken,
      take: (back, call, context) => {
        const frame = new Taken(back, call, context, clock.currentTimeMillisUnsafe())
        taken += call.items.length
        if (call.items.length === 0) outbox.send(back, call.encode([]), back.ended === undefined ? [] : [back.ended])
        for (let index = 0; index < call.items.length; index++) {
          const ask = call.items[index]!
          if (Result.isFailure(ask.request)) {
            answer(frame, index, ask.id, app.refusal(ask.request.failure.reason, undefined))
            continue
          }
          const job = new Job(frame, index, ask, ask.request.success)
          if (running.size < concurrency) start(job)
          else waiting.add(job)
        }
      },
      close: () => {
        closing = true
        for (let job = waiting.take(); job !== undefined; job = waiting.take()) refuse(job, closed)
        rest()
      },
      cut: () => {
        for (const job of running) {
          refuse(job, new PeerLost({ endpoint: label }))
          job.fiber?.interruptUnsafe()
        }
      },
      settle: (boundMs) =>
        Effect.interruptible(idle.await).pipe(Effect.timeoutOption(boundMs), Effect.map(() => taken === 0 && outbox.size() === 0))
    }
  })
