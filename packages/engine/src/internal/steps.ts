/** The steps of a charge as an observer sees them: a span and a duration for each, or the step alone where nobody looks. */
import { Measures, MetricSeries, Tracing } from "@purser/core"
import { Effect, type Metric, type Scope } from "effect"
import { type ChargeStep, EngineMetrics } from "../EngineMetrics.ts"

/** What surrounds the steps, and a request as a whole. */
export interface Steps {
  readonly step: <A, E>(name: ChargeStep, effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
  readonly whole: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
}

/** Reads once whether durations are measured. `inWork` says how many requests there are. */
export const makeSteps = (inWork: () => number): Effect.Effect<Steps, never, Scope.Scope> =>
  Effect.gen(function*() {
    const measures = yield* Measures
    yield* MetricSeries.readWith(EngineMetrics.inFlight, inWork)
    const measured = <A, E>(metric: Metric.Metric<number, unknown>, effect: Effect.Effect<A, E>) => measures ? MetricSeries.timed(metric, effect) : effect
    return {
      step: (name, effect) => Tracing.traced(`charge.${name}`, measured(EngineMetrics.stepSeconds.of(name), effect)),
      whole: (effect) => measured(EngineMetrics.chargeSeconds, effect)
    }
  })
