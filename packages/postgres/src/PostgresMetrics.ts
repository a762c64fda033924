/** What the stores on PostgreSQL count and measure, under the names that a scraper sees; `docs/telemetry.md` lists them. */
import { MetricSeries } from "@purser/core"
import { Metric } from "effect"

/** Operations whose calls share a statement. */
export const batchedOperations = ["claim", "attach", "settle", "extend", "hand_back", "mark_released", "reserve", "release"] as const
export type BatchedOperation = typeof batchedOperations[number]

const known = batchedOperations.map((operation) => [operation])

/** Metrics of the stores. */
export const PostgresMetrics = {
  /** Calls that shared one statement, by operation. */
  batchSize: MetricSeries.make({
    labels: ["operation"],
    known,
    make: (attributes) =>
      Metric.histogram("purser_ledger_batch_size", { description: "calls that shared one statement", boundaries: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512], attributes })
  }),
  /** How long the statement took, by operation; measured while `Measures` says so. */
  batchSeconds: MetricSeries.make({
    labels: ["operation"],
    known,
    make: (attributes) => MetricSeries.seconds("purser_ledger_batch_duration_seconds", "how long a statement of several calls took", attributes)
  }),
  /** Bad messages of which nothing was kept. */
  deadLettersDropped: Metric.counter("purser_dead_letters_dropped_total", { description: "bad messages of which nothing was kept", incremental: true }),
  /** Requests with other terms of which nothing was kept. */
  conflictsDropped: Metric.counter("purser_conflicts_dropped_total", { description: "requests with other terms that were refused and not kept for a person", incremental: true }),
  /** Calls to the processor that the book of calls lacks. */
  callsDropped: Metric.counter("purser_calls_dropped_total", { description: "calls to the processor that were not kept for the charge's story", incremental: true })
} as const
