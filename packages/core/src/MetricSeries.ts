/**
 * One metric by the values of its labels, each series made once: labels that are merged at each update cost several times
 * what the update does. Labels that come from elsewhere cannot make series without end.
 */
import { Clock, type Context, Effect, type Fiber, Metric, type Scope } from "effect"

/** A series for each combination of values. */
export interface MetricSeries<M> {
  /** The series of these values, in the order of the labels. */
  readonly of: (...values: ReadonlyArray<string>) => M
  /** Those that are known from the start, so that their first step can be seen. */
  readonly known: ReadonlyArray<M>
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
  /** Measures how long an effect takes from now on, however it ends; for a fiber that runs it at once. */
  timedIn: <A, E, R>(fiber: Fiber.Fiber<unknown, unknown>, metric: Metric.Metric<number, unknown>, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
    const clock = fiber.getRef(Clock.Clock)
    // The time of day is several sums of big numbers away from this one, and may be set meanwhile.
    const startNanos = clock.monotonicTimeNanosUnsafe()
    return Effect.onExitPrimitive(effect, () => {
      metric.updateUnsafe(Number(clock.monotonicTimeNanosUnsafe() - startNanos) / 1e9, fiber.context)
      return undefined
    })
  },
  /** Measures how long an effect takes, however it ends. */
  timed: <A, E, R>(metric: Metric.Metric<number, unknown>, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) => MetricSeries.timedIn(fiber, metric, effect))
} as const
