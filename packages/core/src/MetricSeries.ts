/**
 * One metric by the values of its labels, each series made once: labels that are merged at each update cost several times
 * what the update does. Labels that come from elsewhere cannot make series without end.
 *
 * What is on the way of each charge looks its series up when a layer is built (`updateOf`, `stopwatch`): an update by the metric
 * itself looks for the registry, the attributes around and the series each time.
 */
import { Clock, type Context, Effect, Metric, type Scope } from "effect"
import { durationsOf, updateOf } from "./internal/durations.ts"

/** A series for each combination of values. */
export interface MetricSeries<M> {
  /** The series of these values, in the order of the labels. */
  readonly of: (...values: ReadonlyArray<string>) => M
  /** Those that are known from the start, so that their first step can be seen. */
  readonly known: ReadonlyArray<M>
}

/** Measures durations of one kind. */
export interface Stopwatch {
  /** This moment, for `ended`. */
  readonly now: () => number
  /** Answers the moment in which it ended. */
  readonly ended: (sinceNanos: number) => number
  /** How long an effect takes from now on, however it ends; for a fiber that runs it at once. */
  readonly around: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/** Series of one metric at the most; what is beyond is counted as `other`. */
const seriesMax = 200

const make = <M>(options: {
  readonly labels: ReadonlyArray<string>
  readonly known?: ReadonlyArray<ReadonlyArray<string>>
  readonly make: (attributes: Readonly<Record<string, string>>) => M
}): MetricSeries<M> => {
  const made = new Map<string, M>()
  const build = (values: ReadonlyArray<string>): M => {
    const metric = options.make(Object.fromEntries(options.labels.map((label, index) => [label, values[index] ?? ""])))
    made.set(values.join("\n"), metric)
    return metric
  }
  const other = options.labels.map(() => "other")
  const of = (...values: ReadonlyArray<string>): M => {
    const found = made.get(values.length === 1 ? values[0]! : values.join("\n"))
    if (found !== undefined) return found
    return made.size < seriesMax ? build(values) : made.get(other.join("\n")) ?? build(other)
  }
  return { of, known: (options.known ?? []).map(build) }
}

/** Seconds from a millisecond to half a minute. */
const secondsBoundaries = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** The time of day is several sums of big numbers away from this clock, and may be set meanwhile. */
const stopwatchOf = (clock: Clock.Clock, update: (seconds: number) => void): Stopwatch => {
  const now = () => Number(clock.monotonicTimeNanosUnsafe())
  const ended = (sinceNanos: number) => {
    const endedNanos = now()
    update((endedNanos - sinceNanos) / 1e9)
    return endedNanos
  }
  return {
    now,
    ended,
    around: (effect) => {
      const sinceNanos = now()
      return Effect.onExitPrimitive(effect, () => {
        ended(sinceNanos)
        return undefined
      })
    }
  }
}

/** Makers of metrics and their series. */
export const MetricSeries = {
  make,
  /** A histogram of seconds. */
  seconds: (name: string, description: string, attributes: Readonly<Record<string, string>> = {}): Metric.Histogram<number> =>
    Metric.histogram(name, { description, boundaries: secondsBoundaries, attributes: { ...attributes, unit: "seconds" } }),
  /** Asks for a gauge's value when somebody looks, as long as the scope lives: whoever changes the value pays nothing for it. */
  readWith: (gauge: Metric.Gauge<number>, read: () => number): Effect.Effect<void, never, Scope.Scope> =>
    Effect.contextWith((context: Context.Context<Scope.Scope>) =>
      Effect.asVoid(Effect.acquireRelease(
        Effect.sync(() => Metric.registerUnsafe(gauge, context, { get: () => ({ value: read() }), update: () => undefined, modify: () => undefined })),
        (registration) => Effect.sync(registration.remove)
      ))),
  /** The update of a metric's series in the registry of a context. */
  updateOf,
  /** Measures what takes seconds, for the registry around. */
  stopwatch: (metric: Metric.Histogram<number>): Effect.Effect<Stopwatch> =>
    Effect.contextWith((context) => Effect.map(Clock.Clock, (clock) => stopwatchOf(clock, durationsOf(metric, context)))),
  /** Measures how long an effect takes, however it ends. */
  timed: <A, E, R>(metric: Metric.Metric<number, unknown>, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) => stopwatchOf(fiber.getRef(Clock.Clock), (seconds) => metric.updateUnsafe(seconds, fiber.context)).around(effect))
} as const
