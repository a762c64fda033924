/** What calls to Stripe count and measure, under the names that a scraper sees; `docs/telemetry.md` lists them. */
import { MetricSeries } from "@purser/core"
import { Metric } from "effect"

/** Metrics of the client. */
export const StripeMetrics = {
  /** Requests by operation and status (`200`, `timeout`, `connection_failed`, `not_sent`, `interrupted`). */
  requests: MetricSeries.make({
    labels: ["operation", "status"],
    make: (attributes) =>
      Metric.counter("purser_stripe_requests_total", { description: "HTTP requests to Stripe by operation and status", incremental: true, attributes })
  }),
  /** Seconds of a request by operation, waiting for a free connection not included. */
  requestSeconds: MetricSeries.make({
    labels: ["operation"],
    make: (attributes) => MetricSeries.seconds("purser_stripe_request_duration_seconds", "from the request to the last byte of its answer", attributes)
  }),
  /** Refusals for being too fast, by the reason that Stripe gives; a limiter that is set right sees none. */
  rateLimited: MetricSeries.make({
    labels: ["reason"],
    known: [["none"], ["global-rate"], ["global-concurrency"], ["endpoint-rate"], ["endpoint-concurrency"], ["resource-specific"]],
    make: (attributes) =>
      Metric.counter("purser_stripe_rate_limited_total", { description: "answers with status 429, by the reason that Stripe gives", incremental: true, attributes })
  })
} as const
