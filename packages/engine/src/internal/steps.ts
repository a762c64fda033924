/**
 * The steps of a charge as an observer sees them: a span and a duration for each, or the step alone where nobody looks.
 *
 * What a duration costs is what surrounds it: a frame of the fiber's, the look for the series, the clock. So series are looked up when the
 * layer is built, an end is noted where the answer goes on anyway, and what begins with something else has the moment of that. No
 * handler hears of an interruption but a frame that is made for it: a step that is cut short has no duration, and the whole has.
 */
import { type ChargeOutcome, type ChargeRequest, Measures, MetricSeries, type PipelineError, type Stopwatch, Tracing } from "@purser/core"
import { type Cause, Effect, Fiber, type Scope } from "effect"
import { type ChargeStep, chargeSteps, EngineMetrics, stateWord } from "../EngineMetrics.ts"

/** How it goes on from a step that may be done again. Methods of one object: each function of its own would be made for every charge. */
export abstract class Onward<A, E, B, F> {
  /** Does it again, after the first failure, or fails as well. */
  abstract again(cause: Cause.Cause<E>): Effect.Effect<A, E>
  abstract onSuccess(answer: A): Effect.Effect<B, F>
  /** It failed to the end. */
  abstract onEnd(cause: Cause.Cause<E>): Effect.Effect<B, F>

  onFailure(cause: Cause.Cause<E>): Effect.Effect<B, F> {
    return this.from(this.again(cause))
  }

  /** Goes on from its end. */
  from(step: Effect.Effect<A, E>): Effect.Effect<B, F> {
    return Effect.matchCauseEffect(step, { onSuccess: (answer) => this.onSuccess(answer), onFailure: (cause) => this.onEnd(cause) })
  }
}

/** Steps that one piece of work does one after the other. */
export interface Turn {
  /** Begins a step whose effect is run next; to be followed by `end`. `atOnce`: nothing was waited for since the step before. */
  readonly begin: <A, E>(name: ChargeStep, effect: Effect.Effect<A, E>, atOnce?: boolean) => Effect.Effect<A, E>
  /** The step that was begun has been answered. */
  readonly end: () => void
}

interface Measured {
  readonly step: <A, E>(name: ChargeStep, effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** The same for an effect that the fiber which is at work here runs next. */
  readonly stepNow: <A, E>(name: ChargeStep, effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** The same, and what follows its answer. `sinceNanos`: when it began, where that is known. */
  readonly stepThen: <A, E, B, E2>(name: ChargeStep, effect: Effect.Effect<A, E>, next: (answer: A) => Effect.Effect<B, E2>, sinceNanos?: number) => Effect.Effect<B, E | E2>
  /** The same for a step that is done again when it fails, and what follows its end: one frame where nobody traces. */
  readonly tried: <A, E, B, F>(name: ChargeStep, first: Effect.Effect<A, E>, onward: Onward<A, E, B, F>) => Effect.Effect<B, F>
  /** Work of several steps, run at once: one frame for all. */
  readonly inTurn: <A, E>(work: (turn: Turn) => Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** The way of a request as a whole; undefined where nobody measures. */
  readonly whole: Stopwatch | undefined
}

/** What surrounds the steps, and the way of a request as a whole. */
export interface Steps extends Measured {
  /** A span around the way of a request; its duration is `whole`'s. */
  readonly wholeNow: (name: string, charge: Effect.Effect<ChargeOutcome, PipelineError>, request: ChargeRequest) => Effect.Effect<ChargeOutcome, PipelineError>
}

type Watches = Readonly<Record<ChargeStep, Stopwatch>>

const spans = Object.fromEntries(chargeSteps.map((name) => [name, `charge.${name}`])) as Record<ChargeStep, string>

/** What the span of a charge says of its end. */
export const said = (outcome: ChargeOutcome) => ({ "purser.outcome": stateWord(outcome._tag) })

const begun = <A, E>(name: ChargeStep, effect: Effect.Effect<A, E>): Effect.Effect<A, E> => Tracing.tracedIn(Fiber.getCurrent()!, spans[name], effect)

const untold: Turn = { begin: begun, end: () => undefined }

/** Where nobody measures. */
const unmeasured: Measured = {
  step: (name, effect) => Effect.withFiber((fiber) => Tracing.tracedIn(fiber, spans[name], effect)),
  stepNow: begun,
  stepThen: (name, effect, next) => Effect.flatMap(begun(name, effect), next),
  tried: (name, first, onward) =>
    begun(name, first) === first
      // Unlike `matchCauseEffect`, this takes the object as it is.
      ? Effect.flatten(Effect.matchCause(first, onward))
      : onward.from(begun(name, Effect.catchCause(first, (cause) => onward.again(cause)))),
  inTurn: (work) => work(untold),
  whole: undefined
}

class MeasuredTurn implements Turn {
  private readonly watches: Watches
  private open: Stopwatch | undefined = undefined
  private sinceNanos = 0
  private endedNanos = 0

  constructor(watches: Watches) {
    this.watches = watches
  }

  begin<A, E>(name: ChargeStep, effect: Effect.Effect<A, E>, atOnce?: boolean): Effect.Effect<A, E> {
    const open = this.watches[name]
    this.open = open
    this.sinceNanos = atOnce === true && this.endedNanos > 0 ? this.endedNanos : open.now()
    return begun(name, effect)
  }

  end(): void {
    const { open } = this
    if (open === undefined) return
    this.open = undefined
    this.endedNanos = open.ended(this.sinceNanos)
  }
}

/** A moment that lasts while a function runs, for the fiber that runs it: what ends there and what begins there do so in the same one. */
class Moment {
  private nanos = 0
  private fiber: Fiber.Fiber<unknown, unknown> | undefined = undefined

  /** When what begins now begins. */
  of(watch: Stopwatch): number {
    return this.fiber !== undefined && this.fiber === Fiber.getCurrent() ? this.nanos : watch.now()
  }

  /** Goes on from an end. One that throws leaves the moment to a fiber that is at its end as well. */
  next<A, B>(nanos: number, on: { readonly onSuccess: (answer: A) => B }, answer: A): B {
    this.nanos = nanos
    this.fiber = Fiber.getCurrent()
    const next = on.onSuccess(answer)
    this.fiber = undefined
    return next
  }
}

/** Where somebody does. */
const measured = (watches: Watches, whole: Stopwatch): Measured => {
  const moment = new Moment()
  const around = <A, E>(fiber: Fiber.Fiber<unknown, unknown>, name: ChargeStep, effect: Effect.Effect<A, E>) => watches[name].around(Tracing.tracedIn(fiber, spans[name], effect))
  return {
    step: (name, effect) => Effect.withFiber((fiber) => around(fiber, name, effect)),
    stepNow: (name, effect) => around(Fiber.getCurrent()!, name, effect),
    stepThen: <A, E, B, E2>(name: ChargeStep, effect: Effect.Effect<A, E>, next: (answer: A) => Effect.Effect<B, E2>, given?: number): Effect.Effect<B, E | E2> => {
      const watch = watches[name]
      const sinceNanos = given ?? moment.of(watch)
      return Effect.matchCauseEffect(begun(name, effect), {
        onSuccess: (answer): Effect.Effect<B, E | E2> => moment.next(watch.ended(sinceNanos), { onSuccess: next }, answer),
        onFailure: (cause) => {
          watch.ended(sinceNanos)
          return Effect.failCause(cause)
        }
      })
    },
    tried: <A, E, B, F>(name: ChargeStep, first: Effect.Effect<A, E>, onward: Onward<A, E, B, F>) => {
      const watch = watches[name]
      const sinceNanos = moment.of(watch)
      const ends = {
        onSuccess: (answer: A) => moment.next(watch.ended(sinceNanos), onward, answer),
        onFailure: (cause: Cause.Cause<E>) => {
          watch.ended(sinceNanos)
          return onward.onEnd(cause)
        }
      }
      return begun(name, first) === first
        ? Effect.matchCauseEffect(first, { onSuccess: ends.onSuccess, onFailure: (cause) => Effect.matchCauseEffect(onward.again(cause), ends) })
        : Effect.matchCauseEffect(begun(name, Effect.catchCause(first, (cause) => onward.again(cause))), ends)
    },
    inTurn: (work) => {
      const turn = new MeasuredTurn(watches)
      return Effect.catchCause(work(turn), (cause) => {
        turn.end()
        return Effect.failCause(cause)
      })
    },
    whole
  }
}

/** Reads once whether durations are measured. `inWork` says how many requests there are. */
export const makeSteps = (inWork: () => number): Effect.Effect<Steps, never, Scope.Scope> =>
  Effect.gen(function*() {
    yield* MetricSeries.readWith(EngineMetrics.inFlight, inWork)
    const watched = Effect.all([
      Effect.all(Object.fromEntries(chargeSteps.map((name) => [name, MetricSeries.stopwatch(EngineMetrics.stepSeconds.of(name))])) as Record<ChargeStep, Effect.Effect<Stopwatch>>),
      MetricSeries.stopwatch(EngineMetrics.chargeSeconds)
    ])
    return {
      ...(yield* Measures) ? measured(...yield* watched) : unmeasured,
      wholeNow: (name, charge, request) => Tracing.tracedIn(Fiber.getCurrent()!, name, charge, Tracing.ofCharge(request), said)
    }
  })
