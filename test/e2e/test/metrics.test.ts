/** What the endpoints show is what the page lists, and all that the dashboard and the alert rules ask for. */
import { assert, describe, it } from "@effect/vitest"
import { postgresUrlEmpty } from "@purser/postgres/TestDatabase"
import { StripeSim } from "@purser/stripe-sim"
import { Effect, Redacted, Schema } from "effect"
import { readFileSync } from "node:fs"
import { parse } from "yaml"
import { csv, desk, type Desk, tens } from "../src/Desk.ts"
import { freePort } from "../src/Proxy.ts"

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8")

/** Metrics of one scrape by name, with the labels that their series have. */
type Scraped = ReadonlyMap<string, ReadonlySet<string>>

const scraped = (text: string): Scraped => {
  const found = new Map<string, Set<string>>()
  for (const line of text.split("\n")) {
    const name = /^# TYPE (\S+)/.exec(line)?.[1]
    if (name !== undefined) found.set(name, new Set())
    const [, series, labels] = /^([a-z_]+)(?:\{(.*)\})? /.exec(line) ?? []
    const family = series === undefined ? undefined : [series, series.replace(/_(?:bucket|sum|count)$/, "")].find((one) => found.has(one))
    if (family !== undefined) for (const [, label] of (labels ?? "").matchAll(/(\w+)="/g)) found.get(family)!.add(label!)
  }
  return found
}

const helpless = (text: string) => [...text.matchAll(/(^|.*\n)# TYPE (\S+)/g)].flatMap(([, before, name]) => before!.startsWith(`# HELP ${name} `) ? [] : [name])

const scrape = (port: number) => Effect.map(Effect.promise(async () => {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`)
  assert.deepStrictEqual([response.status, response.headers.get("content-type")], [200, "text/plain; version=0.0.4; charset=utf-8"])
  return await response.text()
}), (text) => ({ text, metrics: scraped(text) }))

/** Starts a command that shows its metrics, and waits until it says so and is up. */
const shown = Effect.fnUntraced(function*(at: Desk, args: ReadonlyArray<string>, up: string, env: Readonly<Record<string, string>> = {}) {
  const port = yield* freePort
  const running = yield* at.start(args, { PURSER_METRICS_LISTEN: String(port), ...env })
  yield* running.says(`metrics on http://127.0.0.1:${port}/metrics`)
  yield* running.says(up)
  return { running, look: scrape(port) }
})

const names = (page: string) => [...page.matchAll(/^\| `((?:purser|process)_\w+)`/gm)].map((match) => match[1]!)

/** Names in an expression, without what a histogram adds, and the labels that each is asked by. */
const askedIn = (expression: string) =>
  [...expression.matchAll(/\b(up|(?:purser|process)_\w+?)(?:_bucket|_sum|_count)?(?:\{([^}]*)\}|(?![\w{]))/g)].map(([, name, labels]) => ({
    name: name!,
    labels: [...(labels ?? "").matchAll(/(\w+)\s*[=!]/g)].map((match) => match[1]!)
  }))

const Rules = Schema.Struct({
  groups: Schema.Array(Schema.Struct({
    rules: Schema.Array(Schema.Struct({
      alert: Schema.String,
      expr: Schema.String,
      labels: Schema.Struct({ severity: Schema.Literals(["page", "ticket", "info"]) }),
      annotations: Schema.Struct({ summary: Schema.String, action: Schema.String })
    }))
  }))
})
const Dashboard = Schema.fromJsonString(Schema.Struct({
  panels: Schema.Array(Schema.Struct({ title: Schema.String, targets: Schema.optionalKey(Schema.Array(Schema.Struct({ expr: Schema.String }))) }))
}))

describe("metrics", () => {
  it.live("of every command are those of the page, and have what the dashboard and the rules ask for", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* desk()
      const address = `tcp://127.0.0.1:${yield* freePort}`
      at.write("bills.csv", csv(...tens(5)))
      const own = yield* postgresUrlEmpty
      const [worker, broker, console, proxy, runner] = yield* Effect.all([
        shown(at, ["worker", "--endpoint", address, "--transport", "router-dealer"], `worker on ${address}`),
        shown(at, ["broker", "--endpoint", `tcp://127.0.0.1:${yield* freePort}`], "a broker serves"),
        shown(at, ["console", "--port", "0"], "console on"),
        shown(at, ["proxy", "--port", "0"], "spend-cap proxy on", {
          PURSER_PROXY_STRIPE_KEY: "rk_test_metrics", PURSER_PROXY_UPSTREAM: at.sim.url, PURSER_PROXY_DATABASE_URL: Redacted.value(own)
        }),
        shown(at, ["runner", "--transport", "memory"], "runner runner-")
      ], { concurrency: 4 })
      // A first look before there is anything to see: counters are there, at 0.
      assert.include((yield* worker.look).text, "purser_charges_total{state=\"succeeded\"} 0\n")
      const run = yield* at.purser(["run", "bills.csv", "--json", "--workers", "0", "--endpoint", address, "--transport", "router-dealer"])
      assert.strictEqual(run.json?.["succeeded"], 5, run.stderr)
      const seen = yield* worker.look
      assert.include(seen.text, "purser_charges_total{state=\"succeeded\"} 5\n")
      assert.include(seen.text, "purser_charge_step_duration_seconds_count{step=\"confirm\"} 5\n")
      assert.include(seen.text, "purser_charge_duration_seconds_count 5\n")
      assert.include(seen.text, "purser_charges_in_flight 0\n")
      assert.match(seen.text, /^purser_stripe_requests_total\{operation="confirm",status="200"\} 5$/m)
      // The gauges of caps follow the store within ten seconds; another worker shows them when it begins.
      const second = yield* shown(at, ["worker", "--endpoint", `tcp://127.0.0.1:${yield* freePort}`], "starting a worker")
      const caps = yield* Effect.repeat(Effect.andThen(Effect.sleep("20 millis"), second.look), { until: ({ metrics }) => metrics.has("purser_cap_used_minor") })
      assert.match(caps.text, /^purser_cap_used_minor\{namespace="zmq-billing",billing_period="2026-07",currency="usd"\} 5000$/m)
      assert.include(caps.text, "purser_attention{kind=\"dead_letters\"} 0\n")
      assert.match(caps.text, /^purser_cap_limit_minor\{namespace="zmq-billing",billing_period="2026-07",currency="usd"\} 5500$/m)

      const all = new Map<string, Set<string>>()
      for (const { metrics } of [seen, caps, yield* broker.look, yield* console.look, yield* proxy.look, yield* runner.look]) {
        for (const [name, labels] of metrics) all.set(name, new Set([...(all.get(name) ?? []), ...labels]))
      }
      // What has no word on what it is, is not there.
      assert.deepStrictEqual([...helpless(seen.text), ...helpless((yield* runner.look).text)], [])
      const listed = names(read("docs/telemetry.md"))
      assert.deepStrictEqual(listed.toSorted(), [...all.keys()].toSorted())
      assert.deepStrictEqual(listed.length, new Set(listed).size)

      // Prometheus's own word on whether a process answers.
      all.set("up", new Set())
      const rules = (yield* Schema.decodeUnknownEffect(Rules)(parse(read("ops/telemetry/alerts.yml")))).groups.flatMap((group) => group.rules)
      const panels = (yield* Schema.decodeEffect(Dashboard)(read("ops/telemetry/dashboard.json"))).panels
      const asked = [
        ...rules.map(({ alert, expr }) => ({ by: alert, expr })),
        ...panels.flatMap(({ targets, title }) => (targets ?? []).map(({ expr }) => ({ by: title, expr })))
      ]
      assert.isAbove(asked.length, 60)
      const unknown = asked.flatMap(({ by, expr }) => {
        const series = askedIn(expr)
        assert.isAbove(series.length, 0, by)
        return series.flatMap(({ labels, name }) => {
          const known = all.get(name)
          if (known === undefined) return [`${by}: ${name}`]
          return labels.filter((label) => label !== "job" && !known.has(label)).map((label) => `${by}: ${name}{${label}}`)
        })
      })
      assert.deepStrictEqual(unknown, [])
      for (const file of ["prometheus.yml", "collector.yml"]) assert.isObject(parse(read(`ops/telemetry/${file}`)))

      const taken = yield* at.purser(["worker"], { PURSER_METRICS_LISTEN: new URL(at.sim.url).host })
      assert.deepStrictEqual([taken.code, /PURSER_METRICS_LISTEN: cannot listen on .*another program listens there/.test(taken.stderr)], [1, true], taken.stderr)
    })).pipe(Effect.provide(StripeSim.layer())), 60_000)
})
