/** The telemetry of commands that serve or run: what the configuration switches on surrounds the whole command, else nothing does. */
import { type MetricTable, Telemetry, type TelemetrySource } from "@purser/purser"
import { type Context, Effect, Layer, Metric } from "effect"
import { HttpServer } from "effect/http"
import { layerListening } from "../listening.ts"
import { note } from "../ui/Output.ts"
import { version } from "../version.ts"

/** The commands that have telemetry. */
export type Component = "run" | "runner" | "worker" | "webhooks" | "broker" | "forwarder" | "feed" | "proxy" | "console"

const tables: Readonly<Record<Component, Effect.Effect<ReadonlyArray<MetricTable>>>> = {
  run: Effect.succeed(Telemetry.tables.worker),
  runner: Effect.succeed(Telemetry.tables.worker),
  worker: Effect.succeed(Telemetry.tables.worker),
  webhooks: Effect.succeed(Telemetry.tables.worker),
  broker: Effect.succeed(Telemetry.tables.broker),
  forwarder: Effect.succeed(Telemetry.tables.transport),
  feed: Effect.succeed(Telemetry.tables.transport),
  console: Effect.map(Effect.promise(() => import("@purser/console")), ({ ConsoleMetrics }) => [...Telemetry.tables.worker, ConsoleMetrics]),
  proxy: Effect.map(Effect.promise(() => import("@purser/spend-cap-proxy")), ({ ProxyMetrics }) => [ProxyMetrics])
}

const cpuSeconds = Metric.counter("process_cpu_seconds_total", { description: "processor time that this process has used" })
const residentBytes = Metric.gauge("process_resident_memory_bytes", { description: "memory that this process holds" })

/** Figures of the process itself, under the names that all programs have them; read when somebody looks. */
const processFigures = Effect.contextWith((context: Context.Context<never>) =>
  Effect.sync(() => {
    const unchanged = { update: () => undefined, modify: () => undefined }
    const cpu = () => {
      const { system, user } = process.cpuUsage()
      return { count: (system + user) / 1e6, incremental: true }
    }
    Metric.registerUnsafe(cpuSeconds, context, { ...unchanged, get: cpu })
    Metric.registerUnsafe(residentBytes, context, { ...unchanged, get: () => ({ value: process.memoryUsage.rss() }) })
  }))

const scrape = (listen: { readonly host: string; readonly port: number }, component: Component, source: TelemetrySource) =>
  Layer.mergeAll(
    Layer.unwrap(Effect.map(tables[component], (all) => Telemetry.layerScrape(all, source))),
    Layer.effectDiscard(Effect.flatMap(HttpServer.HttpServer, ({ address }) =>
      Effect.andThen(processFigures, note(`metrics on ${HttpServer.formatAddress(address)}/metrics`))))
  ).pipe(
    Layer.provide(layerListening("PURSER_METRICS_LISTEN:", listen))
  )

/** Runs a command inside the telemetry that is configured. */
export const observed = <A, E, R>(component: Component, command: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const settings = yield* Telemetry.settings
    if (!Telemetry.isOn(settings)) return yield* command
    const source = { component, version }
    const layer = settings.metrics === undefined ? Layer.empty : scrape(settings.metrics, component, source)
    return yield* Effect.provide(command, Layer.provideMerge(layer, Telemetry.layer(settings, source)))
  })
