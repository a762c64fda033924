/** What operators see of real processes: one trace over the whole way of a charge, metrics at each endpoint, and no secret anywhere. */
import { assert, describe, it } from "@effect/vitest"
import { chargeKeyOf, defaultNamespace } from "@purser/core"
import { Purser } from "@purser/purser"
import { Effect } from "effect"
import { createServer, request as forward } from "node:http"
import type { AddressInfo } from "node:net"
import { collector, type KeptSpan } from "../src/Collector.ts"
import { atDesk, csv, type Desk, tens } from "../src/Desk.ts"
import { freePort } from "../src/Proxy.ts"

const endpoint = Effect.map(freePort, (port) => `tcp://127.0.0.1:${port}`)

/** A worker and a run elsewhere over router-dealer, both to their end. */
const charged = Effect.fnUntraced(function*(at: Desk, rows: number, env: Readonly<Record<string, string>>) {
  const address = yield* endpoint
  at.write("bills.csv", csv(...tens(rows)))
  const worker = yield* at.start(["worker", "--transport", "router-dealer", "--endpoint", address], env)
  yield* worker.says(`worker on ${address}`)
  const { PURSER_METRICS_LISTEN: _, ...alone } = env
  const run = yield* at.purser(["run", "bills.csv", "--json", "--workers", "0", "--transport", "router-dealer", "--endpoint", address], alone)
  yield* worker.kill("SIGTERM")
  const ended = yield* worker.ended
  assert.strictEqual(ended.code, 0, ended.stderr)
  return { run, worker: ended }
})

/** A Stripe that repeats the key of the first creation in its refusal, in the message and in the request's id. */
const echoing = (upstream: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<ReturnType<typeof createServer>>((resume) => {
        let refused = false
        const server = createServer((request, response) => {
          const key = request.headers.authorization ?? ""
          if (!refused && request.method === "POST" && request.url === "/v1/payment_intents") {
            refused = true
            response.writeHead(400, { "content-type": "application/json", "request-id": `req_${key}` })
            return response.end(JSON.stringify({ error: { type: "invalid_request_error", message: `not with ${key}`, param: key } }))
          }
          request.pipe(forward(upstream + request.url, { method: request.method, headers: request.headers }, (answer) => {
            response.writeHead(answer.statusCode ?? 502, answer.headers)
            answer.pipe(response)
          }))
        })
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      (server) => Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
    ),
    (server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  )

describe("one charge is one trace", () => {
  it.live("from the run over router-dealer to the worker, the ledger's statements and Stripe's request ids", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      const { spans, url } = yield* collector
      const { run } = yield* charged(at, 1, { PURSER_OTLP_ENDPOINT: url, PURSER_OTLP_ENCODING: "json" })
      assert.strictEqual(run.json?.["succeeded"], 1, run.stderr)
      const all = yield* spans
      const submit = all.find(({ name }) => name === "ChargeClient.submit")
      assert.isDefined(submit)
      const trace = all.filter(({ traceId }) => traceId === submit?.traceId)
      const named = (name: string): KeptSpan => trace.find((span) => span.name === name) ?? assert.fail(`no span ${name} in ${trace.map((span) => span.name).join(", ")}`)
      // Each hangs in the one before it, over two processes.
      const way = [["ChargeClient.submit", "purser-run"], ["ChargeServer.handle", "purser-worker"], ["ChargePipeline.charge", "purser-worker"], ["charge.confirm", "purser-worker"], ["Stripe.confirm", "purser-worker"]] as const
      way.forEach(([name, service], index) => {
        assert.strictEqual(named(name).service, service)
        if (index > 0) assert.strictEqual(named(name).parentSpanId, named(way[index - 1]![0]).spanId, name)
      })
      for (const name of ["charge.claim", "charge.create", "charge.attach", "charge.settle"]) {
        assert.strictEqual(named(name).parentSpanId, named("ChargePipeline.charge").spanId)
      }
      // Room under the cap was taken with the claim.
      assert.isFalse(trace.some(({ name }) => name === "charge.reserve"))
      for (const name of ["ledger.claim", "ledger.attach", "ledger.settle"]) {
        assert.strictEqual(named(name).parentSpanId, named(name.replace("ledger", "charge")).spanId)
        assert.strictEqual(named(name).attributes["purser.batch_size"], 1)
      }
      assert.strictEqual(named("ChargePipeline.charge").attributes["purser.outcome"], "succeeded")
      // Statements name the ledger that they were sent to.
      const ledger = new URL(at.env["PURSER_DATABASE_URL"]!)
      const servers = all.flatMap(({ attributes }) => attributes["db.namespace"] === undefined ? [] : [`${attributes["server.address"]}:${attributes["server.port"]}/${attributes["db.namespace"]}`])
      assert.deepStrictEqual(new Set(servers), new Set([`${ledger.host}${ledger.pathname}`]))
      // They are called by what they do.
      const called = new Set(all.map(({ name }) => name))
      assert.deepStrictEqual([called.has(ledger.pathname.slice(1)), called.has("update purser.charges")], [false, true])
      const chargeKey = chargeKeyOf({ namespace: defaultNamespace, customerId: "c0", billingPeriod: "2026-07", item: "base" })
      assert.deepStrictEqual(
        new Set(["ChargeClient.submit", "ChargeServer.handle", "ChargePipeline.charge"].map((name) => named(name).attributes["purser.charge_key"])),
        new Set([chargeKey])
      )
      const asked = yield* at.sim.requests
      for (const [name, path] of [["Stripe.create", "/v1/payment_intents"], ["Stripe.confirm", "/confirm"]] as const) {
        const request = asked.find((one) => one.method === "POST" && one.path.endsWith(path))
        assert.isDefined(request)
        assert.strictEqual(named(name).attributes["stripe.request_id"], request?.requestId)
      }
    })), 60_000)

  it.live("from a program without Effect, where it waits for the charge", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      const { spans, url } = yield* collector
      yield* Effect.promise(async () => {
        const purser = await Purser.make({ ...at.env, PURSER_STRIPE_KEY: "sk_test_e2e", PURSER_OTLP_ENDPOINT: url, PURSER_OTLP_ENCODING: "json", PURSER_OTLP_SIGNALS: "traces" })
        await purser.openCap({ billingPeriod: "2026-07", currency: "usd", expectedMinor: 5000 })
        await purser.charge({ customerId: "embedded", billingPeriod: "2026-07", amountMinor: 1000, currency: "usd", stripeCustomerId: "cus_1", paymentMethod: "pm_1" })
        await purser.close()
      })
      const all = yield* spans
      const charge = all.find(({ name }) => name === "ChargePipeline.charge")
      assert.deepStrictEqual([charge?.service, charge?.attributes["purser.outcome"]], ["purser-embedded", "succeeded"])
      assert.isDefined(all.find(({ name, traceId }) => name === "Stripe.confirm" && traceId === charge?.traceId))
    })), 60_000)
})

describe("what leaves a process", () => {
  it.live("holds no secret: keys, passwords and signatures are in no span, metric or log line", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      const { all, spans: collected, url } = yield* collector
      const port = yield* freePort
      const planted = { stripe: "sk_test_plantedstripe0123456789", header: "planted-collector-token", webhook: "whsec_plantedwebhook" }
      const password = new URL(at.env["PURSER_DATABASE_URL"] ?? "").password
      const outside = { PURSER_OTLP_ENDPOINT: url, PURSER_OTLP_ENCODING: "json", PURSER_OTLP_HEADERS: `authorization=Bearer%20${planted.header}` }
      const echo = yield* echoing(at.sim.url)
      const { run, worker } = yield* charged(at, 3, {
        PURSER_STRIPE_URL: echo,
        ...outside,
        PURSER_METRICS_LISTEN: String(port), PURSER_LOG_LEVEL: "All", PURSER_LOG_FORMAT: "json",
        PURSER_STRIPE_KEY: planted.stripe, PURSER_WEBHOOK_SECRET: planted.webhook
      })
      assert.deepStrictEqual([run.json?.["succeeded"], run.json?.["rejected"]], [2, 1], run.stderr)
      const webhooks = yield* at.start(["webhooks", "--port", "0"], { ...outside, PURSER_WEBHOOK_SECRET: planted.webhook })
      const where = /webhooks on (http:\S+),/.exec(yield* webhooks.says("ledger"))?.[1] ?? ""
      const headers = { "stripe-signature": "t=1,v1=planted-signature", authorization: "Bearer planted-authorization", cookie: "session=planted-cookie", "x-csrf-token": "planted-csrf" }
      assert.strictEqual((yield* Effect.promise(() => fetch(where, { method: "POST", headers, body: "{}" }))).status, 400)
      yield* webhooks.kill("SIGTERM")
      const webhooksEnded = yield* webhooks.ended
      const sent = yield* all
      assert.deepStrictEqual(new Set(sent.map(({ path }) => path)), new Set(["/v1/traces", "/v1/metrics", "/v1/logs"]))
      assert.deepStrictEqual(new Set(sent.map(({ authorization }) => authorization)), new Set([`Bearer ${planted.header}`]))
      const everything = [...sent.map(({ text }) => text), run.stdout, run.stderr, worker.stdout, worker.stderr, webhooksEnded.stdout, webhooksEnded.stderr].join("\n")
      // It did leave something to look at.
      assert.include(everything, "Stripe.confirm")
      assert.include(everything, "purser_charges_total")
      assert.include(everything, "Stripe request")
      assert.include(everything, "not with")
      assert.include(everything, "/webhooks/stripe")
      for (const secret of ["planted-signature", "planted-authorization", "planted-cookie", "planted-csrf", ...Object.values(planted), ...(password === "" ? [] : [password])]) assert.notInclude(everything, secret)
      // And every line of a log for machines is an object that names its charge, its run and its trace; only why a command failed is told to people.
      const linesOf = (text: string) => text.trim().split("\n").filter((line) => !line.includes("rows are not paid")).map((line) => JSON.parse(line) as { readonly annotations: Record<string, string>; readonly traceId?: string; readonly message: string })
      const chargeKey = chargeKeyOf({ namespace: defaultNamespace, customerId: "c1", billingPeriod: "2026-07", item: "base" })
      const spans = yield* collected
      const traces = new Set(spans.filter(({ attributes }) => attributes["purser.charge_key"] === chargeKey).map(({ traceId }) => traceId))
      const lines = linesOf(worker.stderr).filter(({ annotations }) => annotations["chargeKey"] === chargeKey)
      assert.isAbove(lines.length, 0)
      assert.deepStrictEqual(new Set(lines.map(({ traceId }) => traceId)), traces)
      const runs = new Set(linesOf(run.stderr).flatMap(({ annotations }) => annotations["runId"] ?? []))
      assert.deepStrictEqual(runs, new Set(spans.flatMap(({ attributes }) => String(attributes["purser.run_id"] ?? "") || [])))
      assert.strictEqual(runs.size, 1)
      // The run's id has come to the worker with each request: its lines and its spans bear it too.
      assert.deepStrictEqual(new Set(lines.map(({ annotations }) => annotations["runId"])), runs)
      const served = spans.filter(({ name, service }) => service === "purser-worker" && (name === "ChargeServer.handle" || name === "ChargePipeline.charge"))
      assert.isAbove(served.length, 0)
      assert.deepStrictEqual(new Set(served.map(({ attributes }) => attributes["purser.run_id"])), runs)
    })), 60_000)
})

describe("status --watch, and a run, elsewhere than on a terminal", () => {
  it.live("are plain lines, or JSON, until stopped", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      at.write("bills.csv", csv(...tens(3)))
      const watched = yield* at.start(["status", "--watch", "--interval", "200 millis"])
      yield* watched.says("no charges")
      const run = yield* at.purser(["run", "bills.csv", "--json"])
      assert.match(run.stderr, /^3\/3 100% .* 3 paid$/m)
      yield* watched.says("2026-07 usd: 3 charges: 3 paid, cap 90%")
      const machine = yield* at.start(["status", "2026-07", "--watch", "--json", "--interval", "200 millis"])
      yield* machine.says("\"charges\":[{")
      for (const one of [watched, machine]) {
        yield* one.kill("SIGINT")
        const { code, stderr, stdout } = yield* one.ended
        assert.deepStrictEqual([code, (stdout + stderr + run.stderr).includes("\u001b")], [0, false], stderr)
      }
      const { stdout } = yield* machine.ended
      const looks = stdout.trim().split("\n").map((line): unknown => JSON.parse(line))
      assert.nestedPropertyVal(looks[0], "charges[0].charges", 3)
      const refused = yield* at.purser(["status", "--watch", "--interval", "often"])
      assert.deepStrictEqual([refused.code, refused.stderr.includes("--interval")], [1, true])
    })), 60_000)
})
