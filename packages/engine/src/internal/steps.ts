/** The steps of a charge as an observer sees them: a span and a duration for each, or the step alone where nobody looks. */
import { type ChargeOutcome, type ChargeRequest, Measures, MetricSeries, type PipelineError, Tracing } from "@purser/core"
import { Effect, type Metric, type Scope } from "effect"
import { type ChargeStep, chargeSteps, EngineMetrics, stateWord } from "../EngineMetrics.ts"

/** What surrounds the steps, and the way of a request as a whole. */
export interface Steps {
  readonly step: <A, E>(name: ChargeStep, effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
  readonly whole: (name: string, charge: Effect.Effect<ChargeOutcome, PipelineError>, request: ChargeRequest) => Effect.Effect<ChargeOutcome, PipelineError>
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
    if (!measures) {
      return {
        step: (name, effect) => Tracing.traced(watches[name].span, effect),
        whole: (name, charge, request) => Tracing.traced(name, charge, Tracing.ofCharge(request), said)
      }
    }
    return {
      step: (name, effect) =>
        Effect.withFiber((fiber) => {
          const { metric, span } = watches[name]
          return Tracing.tracedIn(fiber, span, MetricSeries.timedIn(fiber, metric, effect))
        }),
      whole: (name, charge, request) =>
        Effect.withFiber((fiber) => Tracing.tracedIn(fiber, name, MetricSeries.timedIn(fiber, EngineMetrics.chargeSeconds, charge), Tracing.ofCharge(request), said))
    }
  })
