/** What the engine counts and measures, under the names that a scraper sees; `docs/telemetry.md` lists them. */
import { attentionKinds, type ChargeOutcome, MetricSeries, runStandings } from "@purser/core"
import { Metric } from "effect"

const counter = (name: string, description: string) => Metric.counter(`purser_${name}`, { description, incremental: true })
const counters = (name: string, description: string, label: string, known: ReadonlyArray<string>) =>
  MetricSeries.make({
    labels: [label],
    known: known.map((value) => [value]),
    make: (attributes) => Metric.counter(`purser_${name}`, { description, incremental: true, attributes })
  })

/** The word of a kind of what waits, as labels have it. */
export const attentionWord = (kind: typeof attentionKinds[number]): string => kind.replaceAll(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`)

const words: Readonly<Record<ChargeOutcome["_tag"], string>> = {
  Succeeded: "succeeded", Declined: "declined", Processing: "processing", RequiresAction: "requires_action", Rejected: "rejected", Canceled: "canceled"
}

/** Steps of a charge whose durations are measured. */
export const chargeSteps = ["claim", "reserve", "create", "attach", "confirm", "look", "settle", "release"] as const
export type ChargeStep = typeof chargeSteps[number]

/** Metrics of the engine. */
export const EngineMetrics = {
  /** Charges that this process settled, by state. A charge that was settled before is not counted again. */
  charges: counters("charges_total", "charges settled by this process, by state", "state", Object.values(words)),
  /** Requests whose sender's idempotency key differs from ours. */
  foreignKeys: counter("foreign_key_mismatch_total", "requests whose sender's idempotency key differs from ours; ours was used"),
  /** Payments that were found after their room had been given back, and took it over the cap. */
  overruns: counter("cap_overrun_total", "payments found after their room under the cap was given back"),
  /** Requests for a charge that was there already: `settled`, with another holder (`held`), or in work in this process (`joined`). */
  redeliveries: counters("redeliveries_total", "requests for charges that were there already, by what was found", "found", ["settled", "held", "joined"]),
  /** Requests that ended without an outcome, by the reason. */
  unsettled: counters("unsettled_total", "requests that ended without an outcome, by reason", "reason", [
    "ChargeInProgress", "ChargeConflict", "ChargeQuarantined", "LedgerUnavailable", "LeaseLost", "GatewayUnavailable", "GatewayTimeout", "RateLimited", "CapUnavailable"
  ]),
  /** Charges that were put aside for a person. */
  quarantined: counter("quarantined_total", "charges put aside because the processor's object differs from the row"),
  /** Charges that a sweep took up, by what came of them. */
  swept: counters("swept_total", "charges taken up by sweeps, by result", "result", ["settled", "unsettled"]),
  /** Requests that this process works on. */
  inFlight: Metric.gauge("purser_charges_in_flight", { description: "requests that this process works on" }),
  /** How long each step took; measured while `Measures` says so. */
  stepSeconds: MetricSeries.make({
    labels: ["step"],
    known: chargeSteps.map((step) => [step]),
    make: (attributes) => MetricSeries.seconds("purser_charge_step_duration_seconds", "how long a step of a charge took", attributes)
  }),
  /** How long a worker had a request, whatever came of it; measured while `Measures` says so. */
  chargeSeconds: MetricSeries.seconds("purser_charge_duration_seconds", "how long a request was in work"),
  /** Refunds that this process settled, by state. */
  refunds: counters("refunds_total", "refunds settled by this process, by state", "state", ["succeeded", "pending", "failed", "already_refunded", "refused"]),
  /** Webhook events that were dealt with, by verdict. */
  webhookEvents: counters("webhook_events_total", "webhook events dealt with by this process, by verdict", "verdict", [
    "settled", "unchanged", "in_work", "noted", "unknown_object", "quarantined", "ignored"
  ]),
  /** Webhook calls that were not believed, by reason. */
  webhookRefused: counters("webhook_refused_total", "webhook calls that were not believed, by reason", "reason", ["SignatureMissing", "SignatureWrong", "SignatureStale", "EventMalformed"]),
  /** Whether charging rests, by cause; read from the store by whoever shows metrics. */
  paused: MetricSeries.make({
    labels: ["cause"],
    known: [["person"], ["outage"]],
    make: (attributes) => Metric.gauge("purser_paused", { description: "1 while charging is paused, by cause", attributes })
  }),
  /** Runs, by how they stand; read from the store by whoever shows metrics. */
  runs: MetricSeries.make({
    labels: ["standing"],
    known: runStandings.map((standing) => [standing]),
    make: (attributes) => Metric.gauge("purser_runs", { description: "runs that are not over, were interrupted or failed, by how they stand", attributes })
  }),
  /** What waits for a person, by kind; read from the store by whoever shows metrics. */
  attention: MetricSeries.make({
    labels: ["kind"],
    known: attentionKinds.map((kind) => [attentionWord(kind)]),
    make: (attributes) => Metric.gauge("purser_attention", { description: "what waits for a person, by kind", attributes })
  })
} as const

/** The word of the ledger for an outcome. */
export const stateWord = (tag: ChargeOutcome["_tag"]): string => words[tag]
