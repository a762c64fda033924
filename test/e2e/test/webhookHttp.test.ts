/** The endpoint over HTTP: what is answered with which status, and what is in the inbox after it. */
import { assert, describe, it } from "@effect/vitest"
import { LedgerError, LedgerUnavailable, WebhookInbox } from "@purser/core"
import { WebhookHttp, Webhooks } from "@purser/engine"
import { Purser, PurserWebhooks } from "@purser/purser"
import * as TestDatabase from "@purser/postgres/TestDatabase"
import { StripeSim } from "@purser/stripe-sim"
import { Effect, Layer, Logger } from "effect"
import { atDesk, csv } from "../src/Desk.ts"
import { isLong } from "../src/Long.ts"
import { signed, watchWorld, webhookSecret } from "../src/Watch.ts"
import { temporaryFolder } from "../src/Store.ts"

const url = "http://127.0.0.1/webhooks/stripe"
const post = (body: NonNullable<RequestInit["body"]>, header?: string, init: RequestInit = {}) =>
  new Request(url, { method: "POST", body, headers: header === undefined ? {} : { "stripe-signature": header }, ...init })
const call = (request: Request) => Effect.flatMap(PurserWebhooks.webHandler, (handle) => Effect.promise(() => handle(request)))
const kept = Effect.flatMap(WebhookInbox, (inbox) => Effect.map(inbox.recent(1000), (events) => events.map(({ event }) => event.id)))
const sent = { id: "evt_http", type: "customer.created", objectId: "cus_1" }

describe("the webhook endpoint", () => {
  const live = (title: string, test: Effect.Effect<void, unknown, Layer.Success<ReturnType<typeof watchWorld>>>) =>
    it.live(title, () => test.pipe(Effect.provide(watchWorld(TestDatabase.layerPglite))))

  live("says 200 for an event that is kept, and again for its repetition", Effect.gen(function*() {
    const { body, header } = yield* signed(sent)
    const first = yield* call(post(body, header))
    assert.deepStrictEqual([first.status, yield* Effect.promise(() => first.json())], [200, { received: true, duplicate: false }])
    const second = yield* call(post(body, header))
    assert.deepStrictEqual([second.status, yield* Effect.promise(() => second.json())], [200, { received: true, duplicate: true }])
    assert.deepStrictEqual(yield* kept, ["evt_http"])
  }))

  live("says 400 to what is not signed, and keeps nothing", Effect.gen(function*() {
    const { body, header } = yield* signed(sent)
    const other = yield* signed(sent, "whsec_of_somebody_else_entirely")
    const text = body.toString()
    const answers = yield* Effect.forEach([
      post(body), post(body, other.header), post(text.replace("evt_http", "evt_hack"), header), post(JSON.stringify(JSON.parse(text), null, 2), header), post("", header)
    ], call)
    assert.deepStrictEqual(answers.map(({ status }) => status), [400, 400, 400, 400, 400])
    assert.deepStrictEqual(yield* kept, [])
  }))

  live("verifies the bytes, however they are cut on their way", Effect.gen(function*() {
    const { body, header } = yield* signed({ ...sent, id: "evt_cut", type: "customer.updated" })
    const pieces = new ReadableStream({
      start: (controller) => {
        for (const byte of body) controller.enqueue(Uint8Array.of(byte))
        controller.close()
      }
    })
    assert.strictEqual((yield* call(post(pieces, header, { duplex: "half" } as RequestInit))).status, 200)
    assert.deepStrictEqual(yield* kept, ["evt_cut"])
  }))

  live("stops reading a body that is too long, announced or not", Effect.gen(function*() {
    const large = Buffer.alloc(2_000_000, "x")
    let given = 0
    const endless = new ReadableStream({
      pull: (controller) => {
        given += 65_536
        controller.enqueue(new Uint8Array(65_536))
      }
    })
    assert.strictEqual((yield* call(post(large, "t=1,v1=00", { headers: { "content-length": "2000000" } }))).status, 413)
    assert.strictEqual((yield* call(post(endless, "t=1,v1=00", { duplex: "half" } as RequestInit))).status, 413)
    assert.isBelow(given, 3_000_000)
    assert.deepStrictEqual(yield* kept, [])
  }))

  live("speaks POST alone", Effect.gen(function*() {
    const answer = yield* call(new Request(url))
    assert.deepStrictEqual([answer.status, answer.headers.get("allow")], [405, "POST"])
  }))

  it.live("says 503 while events cannot be kept, so that they are sent again; no log line holds a secret", () => {
    const lines: Array<string> = []
    const away = Layer.effect(WebhookInbox, Effect.map(WebhookInbox, (inbox) =>
      WebhookInbox.of({
        ...inbox,
        receive: () => Effect.fail(new LedgerError({ reason: new LedgerUnavailable({ operation: "receive event", detail: "gone" }), chargeKey: null }))
      }))).pipe(Layer.provide(WebhookInbox.layerMemory))
    return Effect.gen(function*() {
      const { body, header } = yield* signed(sent)
      assert.strictEqual((yield* call(post(body, header))).status, 503)
      assert.strictEqual((yield* call(post(body, `${header}0`))).status, 400)
      assert.isAbove(lines.length, 1)
      for (const line of lines) {
        assert.notInclude(line, webhookSecret)
        assert.notInclude(line, header.split("v1=")[1]!)
      }
    }).pipe(
      // Fresh, since the world holds layers of the same kind over its own inbox.
      Effect.provide(Layer.fresh(WebhookHttp.layer).pipe(
        Layer.provide(Layer.fresh(Webhooks.layerNoDeps)),
        Layer.provide(away),
        Layer.provide(watchWorld(TestDatabase.layerPglite)),
        Layer.merge(Logger.layer([Logger.map(Logger.formatLogFmt, (line) => void lines.push(line))]))
      ))
    )
  })
})

// Processes of the command take longer than all of the above.
if (isLong) describe("webhooks of an installation", () => {
  it.live("purser webhooks serves until stopped, settles what events name, and lists what it kept", () =>
    atDesk((at) =>
      Effect.gen(function*() {
        at.write("bills.csv", csv("acme,2026-07,10.00,USD,cus_acme,pm_card_processing,base"))
        const settings = { PURSER_WEBHOOK_SECRET: webhookSecret, PURSER_LOG_LEVEL: "Debug" }
        yield* at.purser(["run", "bills.csv", "--yes", "--json"])
        const intents = yield* Effect.promise(() =>
          fetch(`${at.env["PURSER_STRIPE_URL"]}/v1/payment_intents?limit=1`, { headers: { authorization: "Bearer sk_test_x" } })
            .then((answer) => answer.json() as Promise<{ readonly data: ReadonlyArray<{ readonly id: string; readonly status: string }> }>))
        const { id, status } = intents.data[0]!
        assert.strictEqual(status, "processing")
        const server = yield* at.start(["webhooks", "--port", "0"], settings)
        const endpoint = /http:\/\/\S+\/webhooks\/stripe/.exec(yield* server.says("ledger"))![0]
        const send = Effect.fnUntraced(function*(event: Parameters<typeof signed>[0], secret?: string) {
          const { body, header } = yield* signed(event, secret)
          return yield* Effect.promise(() => fetch(endpoint, { method: "POST", body, headers: { "stripe-signature": header } }).then(({ status }) => status))
        })
        yield* at.sim.settle(id, "succeeded")
        assert.strictEqual(yield* send({ id: "evt_cli", type: "payment_intent.succeeded", objectId: id }, "whsec_of_somebody_else_entirely"), 400)
        assert.strictEqual(yield* send({ id: "evt_cli", type: "payment_intent.succeeded", objectId: id }), 200)
        assert.strictEqual(yield* send({ id: "evt_cli", type: "payment_intent.succeeded", objectId: id }), 200)
        assert.strictEqual(yield* send({ id: "evt_nobody", type: "payment_intent.succeeded", objectId: "pi_NOBODY" }), 200)
        assert.strictEqual((yield* Effect.promise(() => fetch(endpoint.replace("stripe", "other"), { method: "POST" }))).status, 404)
        const settled: Effect.Effect<ReadonlyArray<unknown>> = Effect.flatMap(at.purser(["webhooks", "list", "--json"]), ({ json }) => {
          const events = json?.["events"] as ReadonlyArray<{ readonly event: { readonly id: string }; readonly verdict: string | null; readonly deliveries: number }>
          return events.length === 2 && events.every(({ verdict }) => verdict !== null)
            ? Effect.succeed(events.map(({ deliveries, event, verdict }) => [event.id, verdict, deliveries]).sort())
            : Effect.andThen(Effect.sleep(100), settled)
        })
        assert.deepStrictEqual(yield* settled, [["evt_cli", "settled", 2], ["evt_nobody", "unknown_object", 1]])
        const shown = yield* at.purser(["status", "2026-07", "--json"])
        assert.include(shown.stdout, "\"state\":\"succeeded\"")
        const unknown = yield* at.purser(["webhooks", "unknown", "--json"])
        assert.deepStrictEqual((JSON.parse(unknown.stdout) as ReadonlyArray<{ readonly id: string }>).map(({ id }) => id), ["pi_NOBODY"])
        assert.strictEqual((yield* at.purser(["webhooks", "resolve", "pi_NOBODY", "--reason", "a test event"])).code, 0)
        assert.include((yield* at.purser(["webhooks", "unknown"])).stdout, "no unknown objects")
        assert.strictEqual((yield* at.purser(["webhooks", "resolve", "pi_NOBODY", "--reason", "again"])).code, 1)
        yield* server.kill("SIGTERM")
        const ended = yield* server.ended
        assert.deepStrictEqual([ended.code, ended.signal], [0, null])
        assert.notInclude(ended.stdout + ended.stderr, webhookSecret.slice(6))
        const refused = yield* at.purser(["webhooks", "--port", "0"], { PURSER_WEBHOOK_SECRET: "" })
        assert.strictEqual(refused.code, 1)
        assert.include(refused.stderr, "PURSER_WEBHOOK_SECRET")
      })), 180_000)

  it.live("Purser.make answers a web Request behind a plain Node server", () =>
    Effect.scoped(Effect.gen(function*() {
      const sim = yield* StripeSim
      const folder = yield* temporaryFolder
      const purser = yield* Effect.acquireRelease(
        Effect.promise(() => Purser.make({ PURSER_DATA_DIR: folder, PURSER_STRIPE_URL: sim.url, PURSER_STRIPE_KEY: "sk_test_x", PURSER_WEBHOOK_SECRET: webhookSecret })),
        (purser) => Effect.promise(() => purser.close())
      )
      yield* Effect.promise(() => purser.openCap({ billingPeriod: "2026-07", currency: "usd", expectedMinor: 5000 }))
      const charge = () => purser.charge({
        customerId: "acme", billingPeriod: "2026-07", amountMinor: 1000, currency: "usd", stripeCustomerId: "cus_acme", paymentMethod: "pm_card_processing"
      })
      const outcome = yield* Effect.promise(charge)
      const id = outcome._tag === "Processing" ? outcome.paymentIntentId : ""
      yield* sim.settle(id, "succeeded")
      const { body, header } = yield* signed({ id: "evt_plain", type: "payment_intent.succeeded", objectId: id })
      assert.strictEqual((yield* Effect.promise(() => purser.webhooks(post(body, header)))).status, 200)
      const until: Effect.Effect<string> = Effect.flatMap(Effect.promise(charge), ({ _tag }) =>
        _tag === "Processing" ? Effect.andThen(Effect.sleep(20), until) : Effect.succeed(_tag))
      assert.strictEqual(yield* until, "Succeeded")
      assert.strictEqual(yield* sim.payments("acme", "2026-07"), 1)
      yield* Effect.promise(() => purser.close())
      const without = yield* Effect.promise(() => Purser.make({ PURSER_DATA_DIR: folder, PURSER_STRIPE_URL: sim.url, PURSER_STRIPE_KEY: "sk_test_x" }))
      const error = yield* Effect.promise(() => without.webhooks(post(body, header)).then(() => "", (error: Error) => error.message))
      assert.include(error, "PURSER_WEBHOOK_SECRET")
      yield* Effect.promise(() => without.close())
    })).pipe(Effect.provide(StripeSim.layer())), 60_000)
})
