import { assert, describe, it } from "@effect/vitest"
import { Attention, ChargePause, Measures, RunRegistry, SpendCap, Tracing } from "@purser/core"
import { Config, ConfigProvider, Effect, Layer, Metric, Result, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import { gunzipSync } from "node:zlib"
import { Telemetry } from "../src/index.ts"

const configured = (keys: Readonly<Record<string, string>>) => ConfigProvider.layer(ConfigProvider.fromUnknown(keys))
const settings = (keys: Readonly<Record<string, string>>) => Effect.provide(Effect.result(Telemetry.settings), configured(keys))
const source = { component: "test", version: "1" }

const Traces = Schema.fromJsonString(Schema.Struct({
  resourceSpans: Schema.Array(Schema.Struct({
    resource: Schema.Struct({ attributes: Schema.Array(Schema.Struct({ key: Schema.String, value: Schema.Struct({ stringValue: Schema.optionalKey(Schema.String) }) })) }),
    scopeSpans: Schema.Array(Schema.Struct({ spans: Schema.Array(Schema.Struct({ traceId: Schema.String, name: Schema.String })) }))
  }))
}))

/** Runs a program inside the telemetry of these settings, and answers the requests that left. */
const sent = <E>(keys: Readonly<Record<string, string>>, program: Effect.Effect<void, E>) =>
  Effect.gen(function*() {
    const requests: Array<{ readonly url: string; readonly type: string | null; readonly text: string }> = []
    const fetch: typeof globalThis.fetch = (input, init) => {
      const request = new Request(input, { ...init, ...(init?.body == null ? {} : { duplex: "half" }) } as RequestInit)
      return request.arrayBuffer().then((body) => {
        const bytes = new Uint8Array(body)
        const text = new TextDecoder().decode(request.headers.get("content-encoding") === "gzip" ? gunzipSync(bytes) : bytes)
        requests.push({ url: request.url, type: request.headers.get("content-type"), text })
        return new Response("{}")
      })
    }
    const given = yield* Telemetry.settings
    yield* program.pipe(Effect.provide(Telemetry.layer(given, source)), Effect.provideService(FetchHttpClient.Fetch, fetch))
    return requests
  }).pipe(Effect.provide(configured({ PURSER_OTLP_ENDPOINT: "http://collector:4318/", PURSER_OTLP_ENCODING: "json", PURSER_OTLP_SIGNALS: "traces", ...keys })))

const tracesOf = (requests: Effect.Success<ReturnType<typeof sent>>) =>
  Effect.forEach(requests, ({ text }) => Schema.decodeEffect(Traces)(text)).pipe(
    Effect.map((all) => all.flatMap(({ resourceSpans }) => resourceSpans))
  )

describe("what is switched on", () => {
  it.effect("is nothing without settings, and exactly what the settings say", () =>
    Effect.gen(function*() {
      const none = yield* Effect.fromResult(yield* settings({}))
      assert.deepStrictEqual([none, Telemetry.isOn(none)], [{ otlp: undefined, metrics: undefined }, false])
      for (const [text, metrics] of [["9464", { host: "127.0.0.1", port: 9464 }], ["0.0.0.0:1", { host: "0.0.0.0", port: 1 }], ["[::1]:0", { host: "::1", port: 0 }]] as const) {
        assert.deepStrictEqual((yield* Effect.fromResult(yield* settings({ PURSER_METRICS_LISTEN: text }))).metrics, metrics)
      }
      const others = yield* Effect.fromResult(yield* settings({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://everybody:1" }))
      const ours = yield* Effect.fromResult(yield* settings({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://everybody:1", PURSER_OTLP_ENDPOINT: "http://ours:2", PURSER_OTLP_SIGNALS: "logs,traces" }))
      assert.deepStrictEqual([others.otlp?.url.host, ours.otlp?.url.host], ["everybody:1", "ours:2"])
      assert.deepStrictEqual([...others.otlp?.signals ?? [], ...ours.otlp?.signals ?? []], ["traces", "metrics", "logs", "logs", "traces"])
    }))

  it.effect("is refused when it cannot be read, with the key's name", () =>
    Effect.gen(function*() {
      for (const [key, value] of [
        ["PURSER_METRICS_LISTEN", "here"], ["PURSER_METRICS_LISTEN", "a b:1"], ["PURSER_METRICS_LISTEN", "99999"], ["PURSER_METRICS_LISTEN", "[::1]:65536"], ["PURSER_OTLP_ENDPOINT", "collector"], ["PURSER_OTLP_SIGNALS", "traces,all"],
        ["PURSER_OTLP_ENCODING", "xml"], ["PURSER_TRACE_SAMPLE", "1.5"]
      ] as const) {
        const read = yield* settings({ [key]: value })
        assert.isTrue(Result.isFailure(read) && read.failure instanceof Config.ConfigError && read.failure.message.includes(key), key)
      }
    }))

  it.live("measures durations for whoever asks for metrics", () =>
    Effect.gen(function*() {
      const answering: typeof globalThis.fetch = () => Promise.resolve(new Response("{}"))
      const on = (keys: Readonly<Record<string, string>>) =>
        Effect.flatMap(Telemetry.settings, (given) => Effect.provide(Effect.map(Measures, (measures) => measures), Telemetry.layer(given, source))).pipe(
          Effect.provide(configured(keys)), Effect.provideService(FetchHttpClient.Fetch, answering)
        )
      assert.deepStrictEqual(
        [yield* on({}), yield* on({ PURSER_METRICS_LISTEN: "1" }), yield* on({ PURSER_OTLP_ENDPOINT: "http://c:1", PURSER_OTLP_SIGNALS: "traces" }), yield* on({ PURSER_OTLP_ENDPOINT: "http://c:1" })],
        [false, true, false, true]
      )
    }))
})

describe("gauges of the stores", () => {
  const counts = { unresolved: 1, quarantined: 2, conflicts: 3, deadLetters: 4, unknownObjects: 5 }
  const nobody = Effect.succeed([])
  const stores = Layer.mergeAll(
    RunRegistry.layerMemory, SpendCap.layerMemory, ChargePause.layerMemory, Layer.succeed(Measures, true),
    Layer.succeed(Attention, {
      counts: () => Effect.succeed(counts), unresolved: () => nobody, quarantined: () => nobody, conflicts: () => nobody, conflictsOf: () => nobody,
      keepCharge: () => Effect.succeed(false), endQuarantine: () => Effect.succeed(false), hasten: () => Effect.succeed(false)
    })
  )

  it.effect("follow the runs as they stand, and what waits for a person", () =>
    Effect.gen(function*() {
      const registry = yield* RunRegistry
      const context = yield* Effect.context<never>()
      const values = () => Object.fromEntries(Metric.snapshotUnsafe(context).flatMap(({ attributes, id, state }) =>
        (id === "purser_runs" || id === "purser_attention") && "value" in state && state.value !== 0 ? [[Object.values(attributes ?? {}).join(), state.value]] : []))
      const run = (name: string, definition: string) => registry.register({ runId: name, name, state: "running", definition, params: {}, options: null, actor: "ada" })
      yield* run("a", "file")
      yield* run("b", "command")
      yield* Telemetry.watchStores
      yield* TestClock.adjust("1 second")
      const waiting = { unresolved: 1, quarantined: 2, conflicts: 3, dead_letters: 4, unknown_objects: 5 }
      assert.deepStrictEqual(values(), { abandoned: 1, running: 1, ...waiting })
      yield* registry.change({ runId: "b", from: ["running"], to: "interrupted", actor: "bob" })
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(values(), { abandoned: 1, interrupted: 1, ...waiting })
    }).pipe(Effect.scoped, Effect.provide(stores)))
})

describe("what goes to a collector", () => {
  const roots = 400
  const program = Effect.forEach(Array.from({ length: roots }), () => Effect.withSpan(Tracing.traced("child", Effect.void), "root", { root: true }), { discard: true })

  it.live("is every trace, or a share of whole ones, or none", () =>
    Effect.gen(function*() {
      for (const [share, least, most] of [["1", roots, roots], ["0.25", 60, 140], ["0", 0, 0]] as const) {
        const traces = yield* tracesOf(yield* sent({ PURSER_TRACE_SAMPLE: share }, program))
        const spans = traces.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
        const kept = new Set(spans.map(({ traceId }) => traceId)).size
        assert.isTrue(kept >= least && kept <= most, `${kept} of ${roots} at ${share}`)
        assert.strictEqual(spans.length, 2 * kept)
      }
    }))

  it.live("names its service, as OpenTelemetry's own variable says before us, and is written as asked", () =>
    Effect.gen(function*() {
      const named = Effect.fnUntraced(function*(keys: Readonly<Record<string, string>>) {
        const requests = yield* sent(keys, Effect.withSpan(Effect.void, "one"))
        const [first] = yield* tracesOf(requests)
        return [requests[0]?.url, first?.resource.attributes.find(({ key }) => key === "service.name")?.value.stringValue]
      })
      assert.deepStrictEqual(yield* named({}), ["http://collector:4318/v1/traces", "purser-test"])
      assert.deepStrictEqual(yield* named({ OTEL_SERVICE_NAME: "billing", PURSER_OTLP_ENDPOINT: "https://c/otlp" }), ["https://c/otlp/v1/traces", "billing"])
      const [binary] = yield* sent({ PURSER_OTLP_ENCODING: "protobuf" }, Effect.withSpan(Effect.void, "one"))
      assert.strictEqual(binary?.type, "application/x-protobuf")
    }))

  it.live("calls a statement by what it does, and not by the database that all of them are sent to", () =>
    Effect.gen(function*() {
      const statements = {
        "update purser.charges": "with f as (select 1 from purser.charges for update skip locked), u as (update purser.charges c set x = 1) select 1 from u",
        "insert purser.workers": "insert into purser.workers as w (worker) values ($1) on conflict (worker) do update set host = 1",
        "delete purser.workers": "delete from purser.workers where true",
        "select purser.pauses": "select extract(epoch from since) as at, purser.now() - (extract(epoch from purser.now())) from purser.pauses",
        "insert engine_messages": "INSERT INTO \"engine_messages\" (a) VALUES (1)",
        "select engine_runners": "SELECT a FROM \"engine_runners\" WHERE b",
        begin: "BEGIN"
      }
      const traces = yield* tracesOf(yield* sent({}, Effect.forEach(Object.values(statements), (sql) =>
        Effect.useSpan("led", { kind: "client", root: true }, (span) => Effect.sync(() => span.attribute("db.query.text", sql))), { discard: true })))
      assert.sameMembers(traces.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans.map(({ name }) => name))), Object.keys(statements))
    }))

  it.live("holds nobody up when there is no collector", () =>
    Effect.gen(function*() {
      const given = yield* Telemetry.settings
      const refuse: typeof globalThis.fetch = () => Promise.reject(new TypeError("nobody there"))
      const answer = yield* Effect.succeed("done").pipe(
        Effect.withSpan("one"), Effect.provide(Telemetry.layer(given, source)), Effect.provideService(FetchHttpClient.Fetch, refuse)
      )
      assert.strictEqual(answer, "done")
    }).pipe(Effect.provide(Layer.mergeAll(configured({ PURSER_OTLP_ENDPOINT: "http://127.0.0.1:1" })))))
})
