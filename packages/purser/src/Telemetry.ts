/**
 * Traces, metrics and logs to the outside, from the configuration: to a collector by OTLP over HTTP, and to whoever
 * scrapes. Everything is Effect's; here is only what is switched on, how spans are sampled, and which metrics are there
 * from the start. Without settings nothing is built, and the way of a charge costs what it costs without this module.
 */
import { Attention, attentionKinds, type CapReport, ChargePause, Measures, type MetricSeries, RunRegistry, runStandings, SpendCap } from "@purser/core"
import { attentionWord, EngineMetrics } from "@purser/engine"
import { PostgresMetrics } from "@purser/postgres"
import { StripeMetrics } from "@purser/stripe"
import { BrokerMetrics, ZmqMetrics } from "@purser/transport-zeromq"
import { Config, Context, Effect, Layer, Metric, Option, Random, Redacted, Schema, type Scope, Tracer } from "effect"
import { FetchHttpClient, HttpMiddleware, HttpRouter, type HttpServer, HttpServerResponse } from "effect/http"
import { OtlpExporter, OtlpLogger, OtlpMetrics, OtlpSerialization, OtlpTracer, PrometheusMetrics } from "effect/observability"
import { namingStatements } from "./internal/statementSpans.ts"

const signals = ["traces", "metrics", "logs"] as const

/** Where telemetry goes. */
export interface TelemetrySettings {
  /** The collector's base URL, and what goes there; undefined: nothing goes anywhere. */
  readonly otlp: {
    readonly url: URL
    readonly headers: Redacted.Redacted | undefined
    readonly encoding: "protobuf" | "json"
    readonly signals: ReadonlySet<typeof signals[number]>
    /** The share of traces that are kept. */
    readonly sample: number
  } | undefined
  /** Where metrics can be scraped. */
  readonly metrics: { readonly host: string; readonly port: number } | undefined
}

const Listen = Schema.String.pipe(Schema.check(
  Schema.isPattern(/^(?:(?:[\w.-]+|\[[\da-fA-F:]+\]):)?\d{1,5}$/, { message: "expected PORT or HOST:PORT" }),
  Schema.makeFilter((text: string) => Number(text.slice(text.lastIndexOf(":") + 1)) <= 65_535 || "expected a port of at most 65535")
))
const Share = Schema.Finite.pipe(Schema.check(Schema.isBetween({ minimum: 0, maximum: 1 })))

const endpoint = Config.all([Config.option(Config.URL("PURSER_OTLP_ENDPOINT")), Config.option(Config.URL("OTEL_EXPORTER_OTLP_ENDPOINT"))]).pipe(
  Config.map(([ours, everybodys]) => Option.orElse(ours, () => everybodys))
)
const otlp = Config.all({
  headers: Config.option(Config.Redacted("PURSER_OTLP_HEADERS")).pipe(Config.map(Option.getOrUndefined)),
  encoding: Config.Literals(["protobuf", "json"], "PURSER_OTLP_ENCODING").pipe(Config.withDefault("protobuf" as const)),
  signals: Config.Array(Schema.Literals(signals), "PURSER_OTLP_SIGNALS").pipe(Config.withDefault(signals), Config.map((all) => new Set(all))),
  sample: Config.schema(Share, "PURSER_TRACE_SAMPLE").pipe(Config.withDefault(1))
})
const listen = Config.option(Config.schema(Listen, "PURSER_METRICS_LISTEN")).pipe(Config.map(Option.map((text) => {
  const at = text.lastIndexOf(":")
  return { host: at === -1 ? "127.0.0.1" : text.slice(0, at).replace(/^\[|\]$/g, ""), port: Number(text.slice(at + 1)) }
})))

const settings: Config.Config<TelemetrySettings> = Config.all({ endpoint, otlp, listen }).pipe(Config.map(({ endpoint, listen, otlp }) => ({
  otlp: Option.getOrUndefined(Option.map(endpoint, (url) => ({ url, ...otlp }))),
  metrics: Option.getOrUndefined(listen)
})))

/** `name=value,name=value`, values percent-encoded, as OpenTelemetry writes them. */
const headersOf = (text: Redacted.Redacted): Record<string, string> =>
  Object.fromEntries(Redacted.value(text).split(",").filter((pair) => pair.includes("=")).map((pair) => {
    const at = pair.indexOf("=")
    return [pair.slice(0, at).trim(), decodeURIComponent(pair.slice(at + 1).trim())]
  }))

/** Whether a trace is kept, from its id alone: every process that asks finds the same. */
const isKept = (traceId: string, share: number): boolean => share >= 1 || Number.parseInt(traceId.slice(-13), 16) < share * 0x10_0000_0000_0000

/** A tracer that keeps a share of the traces that begin here. Who goes on with a trace does as its beginner did. */
const sampled = (tracer: Tracer.Tracer, share: number): Tracer.Tracer =>
  share >= 1 ? tracer : Tracer.make({
    ...tracer,
    span: (options) => {
      const span = tracer.span(options)
      return Option.isSome(options.parent) || isKept(span.traceId, share) ? span : tracer.span({ ...options, sampled: false })
    }
  })

/** Who says it. `component` is the command: `worker`, `run`, …. */
export interface TelemetrySource {
  readonly component: string
  readonly version?: string
}

const exporters = ({ otlp }: TelemetrySettings, source: TelemetrySource) => Layer.unwrap(Effect.gen(function*() {
  if (otlp === undefined) return Layer.empty
  const serviceName = Option.getOrElse(yield* Config.option(Config.String("OTEL_SERVICE_NAME")), () => `purser-${source.component}`)
  // Two processes of one service must not be taken for one.
  const worker = Option.getOrUndefined(yield* Config.option(Config.String("PURSER_WORKER")))
  const instance = worker ?? `${source.component}-${(yield* Random.nextIntBetween(0, 2 ** 32)).toString(16).padStart(8, "0")}`
  const resource = { serviceName, serviceVersion: source.version, attributes: { "service.namespace": "purser", "service.instance.id": instance } }
  const common = { resource, headers: otlp.headers === undefined ? undefined : headersOf(otlp.headers), compression: "gzip" as const }
  const base = otlp.url.href.replace(/\/+$/, "")
  const on = (signal: typeof signals[number]) => otlp.signals.has(signal)
  const traces = Layer.effect(Tracer.Tracer, Effect.map(OtlpTracer.make({ ...common, url: `${base}/v1/traces` }), (tracer) => sampled(namingStatements(tracer), otlp.sample)))
  return Layer.mergeAll(
    on("traces") ? traces : Layer.empty,
    on("metrics") ? OtlpMetrics.layer({ ...common, url: `${base}/v1/metrics` }) : Layer.empty,
    on("logs") ? OtlpLogger.layer({ ...common, url: `${base}/v1/logs` }) : Layer.empty
  ).pipe(Layer.provide([
    OtlpExporter.layerFlusher,
    FetchHttpClient.layer,
    otlp.encoding === "json" ? OtlpSerialization.layerJson : OtlpSerialization.layerProtobuf
  ]))
}))

/** A table of metrics: of a package, or of an app. */
export type MetricTable = Readonly<Record<string, Metric.Metric<never, unknown> | MetricSeries<Metric.Metric<never, unknown>>>>

const buildInfo = ({ component, version = "" }: TelemetrySource) =>
  Metric.gauge("purser_build_info", { description: "1, with the version and the command", attributes: { version, component } })

/** What is never counted is at 0 and not missing, so that a first step is seen as one. */
const begin = (tables: ReadonlyArray<MetricTable>): Effect.Effect<void> =>
  Effect.contextWith((context) => Effect.sync(() => {
    for (const metric of tables.flatMap((table) => Object.values(table))) {
      for (const one of Metric.isMetric(metric) ? [metric] : metric.known) one.valueUnsafe(context)
    }
  }))

const path = "/metrics"

/** What libraries count for themselves, without a word on what it is and under names that are theirs to change, is not shown. */
const withoutLibraries = (text: string): string => text.replaceAll(/^# TYPE (effect_\w+) .*\n(?:\1.*\n)*/gm, "")

const shown = Effect.map(PrometheusMetrics.format(), (text) =>
  HttpServerResponse.text(withoutLibraries(text), { contentType: "text/plain; version=0.0.4; charset=utf-8" }))

/** Metrics for whoever scrapes, at the server that the app provides. A scrape is in no trace. */
const layerScrape = (tables: ReadonlyArray<MetricTable>, source: TelemetrySource): Layer.Layer<never, never, HttpServer.HttpServer> =>
  Layer.mergeAll(
    Layer.effectDiscard(Effect.andThen(begin(tables), Metric.update(buildInfo(source), 1))),
    HttpRouter.serve(HttpRouter.add("GET", path, shown), { disableListenLog: true, disableLogger: true })
  ).pipe(Layer.provide(HttpMiddleware.layerTracerDisabledForUrls([path])))

const pollMs = 10_000
/** Caps that are shown, the fullest first: a namespace for each of a thousand accounts makes a thousand caps. */
const capsMax = 200

const capLimit = Metric.gauge("purser_cap_limit_minor", { description: "what a cap allows, in minor units" })
const capUsed = Metric.gauge("purser_cap_used_minor", { description: "room under a cap that is taken, in minor units" })

const share = ({ capMinor, reservedMinor }: CapReport) => capMinor === 0n ? 1 : Number(reservedMinor) / Number(capMinor)

/** What waits is counted up to this. */
const waitingMax = 10_000

/** Keeps the gauges of caps, pauses, runs and of what waits for a person as the stores have them, for as long as the scope lives; nothing where nobody looks. */
const watchStores: Effect.Effect<void, never, SpendCap | ChargePause | RunRegistry | Attention | Scope.Scope> = Effect.gen(function*() {
  if (!(yield* Measures)) return
  const cap = yield* SpendCap
  const pause = yield* ChargePause
  const registry = yield* RunRegistry
  const attention = yield* Attention
  const context = yield* Effect.context<never>()
  let shown = new Map<string, () => void>()
  const look = Effect.gen(function*() {
    const open = (yield* cap.report()).filter(({ closed }) => !closed).toSorted((a, b) => share(b) - share(a)).slice(0, capsMax)
    const before = shown
    shown = new Map()
    for (const { billingPeriod, capMinor, currency, namespace, reservedMinor } of open) {
      const attributes = { namespace, billing_period: billingPeriod, currency }
      const figures = [[Metric.withAttributes(capLimit, attributes), capMinor], [Metric.withAttributes(capUsed, attributes), reservedMinor]] as const
      for (const [metric, minor] of figures) metric.updateUnsafe(Number(minor), context)
      shown.set(JSON.stringify(attributes), () => figures.forEach(([metric]) => Metric.removeUnsafe(metric, context)))
    }
    for (const [key, remove] of before) if (!shown.has(key)) remove()
    const pauses = yield* pause.view
    for (const cause of ["person", "outage"] as const) {
      EngineMetrics.paused.of(cause).updateUnsafe(pauses.some((one) => one.cause === cause) ? 1 : 0, context)
    }
    const standings = yield* registry.standings
    for (const standing of runStandings) EngineMetrics.runs.of(standing).updateUnsafe(standings[standing] ?? 0, context)
    const waiting = yield* attention.counts(waitingMax)
    for (const kind of attentionKinds) EngineMetrics.attention.of(attentionWord(kind)).updateUnsafe(waiting[kind], context)
  }).pipe(Effect.catch((error) => Effect.logDebug("the gauges of the stores stay as they are", error.message)))
  // A look of the clock's belongs to no work: each would be a trace of its own.
  yield* Effect.forkScoped(Effect.withTracerEnabled(Effect.forever(Effect.andThen(look, Effect.sleep(pollMs))), false))
})

/** Telemetry, by the configuration. */
export const Telemetry = {
  settings,
  /** Whether anything is switched on. */
  isOn: ({ metrics, otlp }: TelemetrySettings): boolean => metrics !== undefined || otlp !== undefined,
  /** Traces, metrics and logs to the collector, and durations for whoever asks for metrics. */
  layer: (given: TelemetrySettings, source: TelemetrySource): Layer.Layer<never, Config.ConfigError> =>
    Layer.mergeAll(exporters(given, source), Layer.succeedContext(Context.make(Measures, given.metrics !== undefined || given.otlp?.signals.has("metrics") === true))),
  layerScrape,
  watchStores,
  /** What the commands have tables of. */
  tables: {
    worker: [EngineMetrics, StripeMetrics, PostgresMetrics, ZmqMetrics],
    broker: [BrokerMetrics, ZmqMetrics],
    transport: [ZmqMetrics]
  } satisfies Record<string, ReadonlyArray<MetricTable>>
} as const
