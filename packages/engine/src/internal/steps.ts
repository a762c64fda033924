/** The steps of a charge as an observer sees them: a span and a duration for each, or the step alone where nobody looks. */
import { type ChargeOutcome, type ChargeRequest, Measures, MetricSeries, type PipelineError, Tracing } from "@purser/core"
import { Effect, Fiber, type Metric, type Scope } from "effect"
import { type ChargeStep, chargeSteps, EngineMetrics, stateWord } from "../EngineMetrics.ts"

/** What surrounds the steps, and the way of a request as a whole. */
export interface Steps {
  readonly step: <A, E>(name: ChargeStep, effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** The same for an effect that the fiber which is at work here runs next. */
  readonly stepNow: <A, E>(name: ChargeStep, effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
  readonly wholeNow: (name: string, charge: Effect.Effect<ChargeOutcome, PipelineError>, request: ChargeRequest) => Effect.Effect<ChargeOutcome, PipelineError>
}

interface Watch {
  readonly span: string
  readonly metric: Metric.Metric<number, unknown>
}
const watches = Object.fromEntries(chargeSteps.map((name) => [name, { span: `charge.${name}`, metric: EngineMetrics.stepSeconds.of(name) }])) as Record<ChargeStep, Watch>

/** What the span of a charge says of its end. */
export const said = (outcome: ChargeOutcome) => ({ "purser.outcome": stateWord(outcome._tag) })

/** Reads once whether durations are measured. `inWork` says how many requests there are. */
export const makeSteps = (inWork: () => number): Effect.Effect<Steps, never, Scope.Scope> =>
  Effect.gen(function*() {
    const measures = yield* Measures
    yield* MetricSeries.readWith(EngineMetrics.inFlight, inWork)
    const stepIn = <A, E>(fiber: Fiber.Fiber<unknown, unknown>, name: ChargeStep, effect: Effect.Effect<A, E>) => {
      const { metric, span } = watches[name]
      return Tracing.tracedIn(fiber, span, measures ? MetricSeries.timedIn(fiber, metric, effect) : effect)
    }
    return {
      step: (name, effect) => Effect.withFiber((fiber) => stepIn(fiber, name, effect)),
      stepNow: (name, effect) => stepIn(Fiber.getCurrent()!, name, effect),
      wholeNow: (name, charge, request) => {
        const fiber = Fiber.getCurrent()!
        return Tracing.tracedIn(fiber, name, measures ? MetricSeries.timedIn(fiber, EngineMetrics.chargeSeconds, charge) : charge, Tracing.ofCharge(request), said)
      }
    }
  })
