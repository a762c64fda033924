/** What the proxy counts and measures, under the names that a scraper sees; `docs/telemetry.md` lists them. */
import { MetricSeries } from "@purser/core"
import { Metric } from "effect"
import { refusalCodes } from "./Refusal.ts"

/** Metrics of the proxy. */
export const ProxyMetrics = {
  /** Calls by what was decided. */
  calls: MetricSeries.make({
    labels: ["verdict"],
    known: [["permitted"], ["replayed"], ["duplicate"], ["resumed"], ["look"], ["refused"]],
    make: (attributes) => Metric.counter("purser_proxy_calls_total", { description: "calls by what the proxy decided", incremental: true, attributes })
  }),
  /** Refusals by their code. */
  refusals: MetricSeries.make({
    labels: ["code"],
    known: refusalCodes.map((code) => [code]),
    make: (attributes) => Metric.counter("purser_proxy_refusals_total", { description: "calls that the proxy refused, by code", incremental: true, attributes })
  }),
  /** Calls of which nothing was forwarded because the store was away. */
  storeAway: Metric.counter("purser_proxy_store_away_total", { description: "calls that were not forwarded because the store was away", incremental: true }),
  /** Calls that are under way. */
  inFlight: Metric.gauge("purser_proxy_calls_in_flight", { description: "calls that are under way" }),
  /** How long a call took, Stripe's part included; measured while `Measures` says so. */
  callSeconds: MetricSeries.seconds("purser_proxy_call_duration_seconds", "how long a call took, Stripe's part included")
} as const
