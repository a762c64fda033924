/** What the console counts and measures, under the names that a scraper sees; `docs/telemetry.md` lists them. */
import { MetricSeries } from "@purser/core"
import { Metric } from "effect"

/** Metrics of the console. */
export const ConsoleMetrics = {
  /** Answers by endpoint of the API (`page` for everything else) and HTTP status. */
  requests: MetricSeries.make({
    labels: ["endpoint", "status"],
    known: [["page", "200"]],
    make: (attributes) => Metric.counter("purser_console_requests_total", { description: "answers of the console by endpoint and HTTP status", incremental: true, attributes })
  }),
  /** Seconds from a request to the head of its answer, by endpoint. */
  requestSeconds: MetricSeries.make({
    labels: ["endpoint"],
    known: [["page"]],
    make: (attributes) => MetricSeries.seconds("purser_console_request_duration_seconds", "from a request of the console to the head of its answer", attributes)
  }),
  /** Pages that follow what moves. */
  watchers: Metric.gauge("purser_console_watchers", { description: "pages that follow what moves" })
} as const
