/**
 * A histogram's series in the fields of one object. The sums of Effect's own are kept by a closure, which makes a new object of each
 * number that is put there; where every charge is measured in several places, that costs more than what is measured.
 */
import { Context, Metric } from "effect"

/** What a registry holds of a histogram. */
export class Durations implements Metric.Metric.Hooks<number, Metric.HistogramState> {
  private readonly boundaries: ReadonlyArray<number>
  /** By the first boundary that is not below; the last for what is above all. */
  private readonly counts: Float64Array
  private sum: number
  private min: number
  private max: number

  /** Goes on from what was measured before. */
  constructor({ buckets, count, max, min, sum }: Metric.HistogramState) {
    this.boundaries = buckets.map(([boundary]) => boundary)
    const upTo = [...buckets.map(([, cumulated]) => cumulated), count]
    this.counts = Float64Array.from(upTo, (cumulated, place) => cumulated - (upTo[place - 1] ?? 0))
    this.sum = sum
    this.min = min
    this.max = max
  }

  readonly update = (value: number): void => {
    const { boundaries } = this
    let place = 0
    // Most durations are below the first few.
    while (place < boundaries.length && value > boundaries[place]!) place++
    this.counts[place]! += 1
    this.sum += value
    if (value < this.min) this.min = value
    if (value > this.max) this.max = value
  }

  readonly modify = this.update

  readonly get = (): Metric.HistogramState => {
    let count = 0
    const buckets = this.boundaries.map((boundary, place): [number, number] => [boundary, count += this.counts[place]!])
    return { buckets, count: count + this.counts[buckets.length]!, min: this.min, max: this.max, sum: this.sum }
  }
}

/** What a registry would hold of a metric, and under which key: only a registry says. */
const entryOf = (metric: Metric.Metric<never, unknown>, context: Context.Context<never>) => {
  const probe: Metric.MetricRegistry = new Map()
  metric.valueUnsafe(Context.add(context, Metric.MetricRegistry, probe))
  return [...probe][0]
}

/** The update of a metric's series in the registry of a context. */
export const updateOf = <Input>(metric: Metric.Metric<Input, unknown>, context: Context.Context<never>): (input: Input) => void => {
  metric.valueUnsafe(context)
  const [key = ""] = entryOf(metric, context) ?? []
  const hooks = Context.get(context, Metric.MetricRegistry).get(key)?.hooks
  return hooks === undefined ? (input) => metric.updateUnsafe(input, context) : (input) => hooks.update(input, context)
}

/** The same for a histogram, whose series becomes one of these. */
export const durationsOf = (metric: Metric.Histogram<number>, context: Context.Context<never>): ((value: number) => void) => {
  const entry = entryOf(metric, context)
  if (entry === undefined) return updateOf(metric, context)
  const [key, metadata] = entry
  const registry = Context.get(context, Metric.MetricRegistry)
  const there = registry.get(key)?.hooks
  if (there instanceof Durations) return there.update
  const durations = new Durations(metric.valueUnsafe(context))
  registry.set(key, { ...metadata, hooks: durations })
  return durations.update
}
