/** The steps of a charge as an observer sees them: a span and a duration for each, or the step alone where nobody looks. */
import { type ChargeOutcome, type ChargeRequest, Measures, MetricSeries, type PipelineError, Tracing } from "@purser/core"
import { Clock, Context, Effect, Fiber, Metric, type Scope } from "effect"
import { type ChargeStep, chargeSteps, EngineMetrics, stateWord } from "../EngineMetrics.ts"

/** What surrounds the steps, and the way of a request as a whole. */
export interface Steps {
  readonly step: <A, E>(name: ChargeStep, effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** The same for an effect that the fiber which is at work here runs next. */
  readonly stepNow: <A, E>(name: ChargeStep, effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** Around what comes next without being a step, in the fiber that is at work here: it is no part of the step before. */
  readonly beside: <A>(next: A) => A
  readonly wholeNow: (name: string, charge: Effect.Effect<ChargeOutcome, PipelineError>, request: ChargeRequest) => Effect.Effect<ChargeOutcome, PipelineError>
}

interface Watch {
  readonly span: string
  readonly metric: Metric.Metric<number, unknown>
}
const watches = Object.fromEntries(chargeSteps.map((name) => [name, { span: `charge.${name}`, metric: EngineMetrics.stepSeconds.of(name) }])) as Record<ChargeStep, Watch>

/** What an update needs of a context, and nothing else: looked up in the whole one, it costs more than the update. */
const placeOf = (context: Context.Context<never>): Context.Context<never> =>
  Context.add(
    Context.make(Metric.MetricRegistry, Context.get(context, Metric.MetricRegistry)),
    Metric.CurrentMetricAttributes,
    Context.get(context, Metric.CurrentMetricAttributes)
  )

/** What the span of a charge says of its end. */
export const said = (outcome: ChargeOutcome) => ({ "purser.outcome": stateWord(outcome._tag) })

/**
 * The way of one request through its steps: what is under way, and since when. A step ends where the next one begins, with
 * the request, or before what comes beside the steps: a frame and a second reading of the clock for each step would
 * cost more than the rest of measuring.
 */
class Course {
  private readonly clock: Clock.Clock
  private readonly place: Context.Context<never>
  private readonly beganNanos: number
  private under: Metric.Metric<number, unknown> | undefined = undefined
  private sinceNanos = 0

  constructor(clock: Clock.Clock, place: Context.Context<never>) {
    this.clock = clock
    this.place = place
    this.beganNanos = this.now()
  }

  /** As a number, whose differences are within a few nanoseconds those of the big ones. */
  private now(): number {
    return Number(this.clock.monotonicTimeNanosUnsafe())
  }

  private endAt(nowNanos: number): void {
    this.under?.updateUnsafe((nowNanos - this.sinceNanos) / 1e9, this.place)
    this.under = undefined
  }

  begin(metric: Metric.Metric<number, unknown>): void {
    const now = this.now()
    this.endAt(now)
    this.under = metric
    this.sinceNanos = now
  }

  /** What is under way ends now, if anything is. */
  end(): void {
    if (this.under !== undefined) this.endAt(this.now())
  }

  over(): void {
    const now = this.now()
    this.endAt(now)
    EngineMetrics.chargeSeconds.updateUnsafe((now - this.beganNanos) / 1e9, this.place)
  }
}

/** Reads once whether durations are measured. `inWork` says how many requests there are. */
export const makeSteps = (inWork: () => number): Effect.Effect<Steps, never, Scope.Scope> =>
  Effect.gen(function*() {
    const measures = yield* Measures
    yield* MetricSeries.readWith(EngineMetrics.inFlight, inWork)
    const courses = new Map<Fiber.Fiber<unknown, unknown>, Course>()
    // Requests come in the same context, mostly.
    let around: Context.Context<never> | undefined
    let place = Context.empty()
    const courseIn = (fiber: Fiber.Fiber<unknown, unknown>): Course => {
      if (fiber.context !== around) {
        around = fiber.context
        place = placeOf(around)
      }
      return new Course(fiber.getRef(Clock.Clock), place)
    }
    const measured = <A, E>(fiber: Fiber.Fiber<unknown, unknown>, name: ChargeStep, effect: Effect.Effect<A, E>): Effect.Effect<A, E> => {
      // Giving room back is tried again after a while, which is no part of it.
      const course = name === "release" ? undefined : courses.get(fiber)
      if (course === undefined) return MetricSeries.timedIn(fiber, watches[name].metric, effect)
      course.begin(watches[name].metric)
      return effect
    }
    const stepIn = <A, E>(fiber: Fiber.Fiber<unknown, unknown>, name: ChargeStep, effect: Effect.Effect<A, E>) =>
      Tracing.tracedIn(fiber, watches[name].span, measures ? measured(fiber, name, effect) : effect)
    const whole = <A, E>(fiber: Fiber.Fiber<unknown, unknown>, charge: Effect.Effect<A, E>): Effect.Effect<A, E> =>
      Effect.onExitPrimitive(
        Effect.suspend(() => {
          courses.set(fiber, courseIn(fiber))
          return charge
        }),
        () => {
          courses.get(fiber)?.over()
          courses.delete(fiber)
          return undefined
        }
      )
    return {
      step: (name, effect) => Effect.withFiber((fiber) => stepIn(fiber, name, effect)),
      stepNow: (name, effect) => stepIn(Fiber.getCurrent()!, name, effect),
      beside: (next) => {
        if (measures) courses.get(Fiber.getCurrent()!)?.end()
        return next
      },
      wholeNow: (name, charge, request) => {
        const fiber = Fiber.getCurrent()!
        return Tracing.tracedIn(fiber, name, measures ? whole(fiber, charge) : charge, Tracing.ofCharge(request), said)
      }
    }
  })
