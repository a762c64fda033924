/** The steps of a charge as an observer sees them: a span and a duration for each, or the step alone where nobody looks. */
import { Measures, MetricSeries, Tracing } from "@purser/core"
import { Effect, type Metric, type Scope } from "effect"
import { type ChargeStep, chargeSteps, EngineMetrics } from "../EngineMetrics.ts"

/** What surrounds the steps, and a request as a whole. */
export interface Steps {
  readonly step: <A, E>(name: ChargeStep, effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
  readonly whole: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
}

interface Watch {
  readonly span: string
  readonly metric: Metric.Metric<number, unknown>
}
const watches = Object.fromEntries(chargeSteps.map((name) => [name, { span: `charge.${name}`, metric: EngineMetrics.stepSeconds.of(name) }])) as Record<ChargeStep, Watch>

/** Reads once whether durations are measured. `inWork` says how many requests there are. */
export const makeSteps = (inWork: () => number): Effect.Effect<Steps, never, Scope.Scope> =>
  Effect.gen(function*() {
    const measures = yield* Measures
    yield* MetricSeries.readWith(EngineMetrics.inFlight, inWork)
    return {
      step: measures
        ? (name, effect) =>
          Effect.withFiber((fiber) => {
            const { metric, span } = watches[name]
            return Tracing.tracedIn(fiber, span, MetricSeries.timedIn(fiber, metric, effect))
          })
        : (name, effect) => Tracing.traced(watches[name].span, effect),
      whole: (effect) => measures ? MetricSeries.timed(EngineMetrics.chargeSeconds, effect) : effect
    }
  })
