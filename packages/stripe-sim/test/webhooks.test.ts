import { StripeSim, type WebhookFaultAction } from "@purser/stripe-sim"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { createServer } from "node:http"
import { Stripe } from "stripe"
import { call, raw, refusal, sdk, type Sim } from "./support.ts"

interface Received {
  readonly body: string
  readonly signature: string
}

/** A receiver that keeps what comes and answers what it is told to. */
const receiver = Effect.gen(function*() {
  const got: Array<Received> = []
  const answers: Array<number> = []
  const server = createServer((request, response) => {
    let body = ""
    request.setEncoding("utf8").on("data", (chunk: string) => body += chunk)
    request.on("end", () => {
      got.push({ body, signature: String(request.headers["stripe-signature"]) })
      response.writeHead(answers.shift() ?? 200).end()
    })
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () => Effect.callback<void>((resume) => {
      server.close(() => resume(Effect.void))
    })
  )
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  return { url: `http://127.0.0.1:${port}/hook`, got, answers }
})

const secret = "whsec_test"
const types = (got: ReadonlyArray<Received>) => got.map(({ body }): string => JSON.parse(body).type)
const ids = (got: ReadonlyArray<Received>) => got.map(({ body }): string => JSON.parse(body).id)

/** The event if the SDK takes it at the simulator's time, else why not. */
const verify = (sim: Sim, { body, signature }: Received) =>
  Effect.gen(function*() {
    const nowMs = Math.floor(yield* sim.nowMs)
    return yield* Effect.try({
      try: (): { readonly event?: Stripe.Event; readonly error: string } => ({
        event: Stripe.webhooks.constructEvent(body, signature, secret, 300, undefined, nowMs),
        error: ""
      }),
      catch: String
    }).pipe(Effect.catch((error) => Effect.succeed({ event: undefined, error })))
  })

const charge = (sim: Sim, amount = 500) =>
  call(() => sdk(sim).charges.create({ amount, currency: "usd", customer: "cus_1" }))

const refund = (sim: Sim, id: string) => call(() => sdk(sim).refunds.create({ charge: id }))

describe("webhooks", () => {
  it.effect("are signed over the raw bytes, as the SDK checks it", () =>
    Effect.gen(function*() {
      const hook = yield* receiver
      const sim = yield* StripeSim.make({ webhooks: [{ url: hook.url, secret, events: ["charge.*"] }] })
      const made = yield* charge(sim)
      yield* sim.webhooks.settled
      assert.strictEqual(hook.got.length, 1)
      const [first] = hook.got
      const { event } = yield* verify(sim, first!)
      assert.strictEqual(event?.type === "charge.succeeded" ? event.data.object.id : undefined, made.id)
      const compact = { ...first!, body: JSON.stringify(JSON.parse(first!.body)) }
      assert.include((yield* verify(sim, compact)).error, "No signatures found")
      const stored = yield* call(() => sdk(sim).events.list({ delivery_success: true }))
      assert.deepStrictEqual(stored.data.map(({ id, pending_webhooks }) => [id, pending_webhooks]), [[event!.id, 0]])
    }))

  it.effect("the signature is made at the simulator's time", () =>
    Effect.gen(function*() {
      const hook = yield* receiver
      const sim = yield* StripeSim.make({ webhooks: [{ url: hook.url, secret }] })
      yield* sim.advanceClock("3 days")
      yield* charge(sim)
      yield* sim.webhooks.settled
      assert.strictEqual((yield* verify(sim, hook.got[0]!)).error, "")
      assert.match(hook.got[0]!.signature, new RegExp(`^t=${Math.floor((yield* sim.nowMs) / 1_000_000)}`))
    }))

  const faulty = (action: WebhookFaultAction) =>
    Effect.gen(function*() {
      const hook = yield* receiver
      const sim = yield* StripeSim.make({ webhooks: [{ url: hook.url, secret, events: ["charge.succeeded", "charge.refunded"] }] })
      yield* sim.webhooks.addFaults({ match: { type: "charge.succeeded" }, action })
      const { id } = yield* charge(sim)
      yield* refund(sim, id)
      yield* sim.webhooks.settled
      return { sim, hook }
    })

  it.effect("repeat: the same event again, byte for byte", () =>
    Effect.gen(function*() {
      const { hook } = yield* faulty({ kind: "repeat", times: 2 })
      assert.deepStrictEqual(types(hook.got), ["charge.succeeded", "charge.succeeded", "charge.succeeded", "charge.refunded"])
      assert.strictEqual(new Set(ids(hook.got)).size, 2)
    }))

  it.effect("twin: another event of the same change", () =>
    Effect.gen(function*() {
      const { hook, sim } = yield* faulty({ kind: "twin" })
      assert.deepStrictEqual(types(hook.got).toSorted(), ["charge.refunded", "charge.succeeded", "charge.succeeded"])
      assert.strictEqual(new Set(ids(hook.got)).size, 3)
      for (const id of ids(hook.got)) yield* call(() => sdk(sim).events.retrieve(id))
    }))

  it.effect("reorder: later events overtake, or it is released", () =>
    Effect.gen(function*() {
      const { hook } = yield* faulty({ kind: "reorder", behind: 1 })
      assert.deepStrictEqual(types(hook.got), ["charge.refunded", "charge.succeeded"])
      const other = yield* faulty({ kind: "reorder", behind: 9 })
      assert.deepStrictEqual(types(other.hook.got), ["charge.refunded"])
      yield* other.sim.webhooks.release
      yield* other.sim.webhooks.settled
      assert.deepStrictEqual(types(other.hook.got), ["charge.refunded", "charge.succeeded"])
    }))

  it.effect("late: it comes when the clock says so, and is signed then", () =>
    Effect.gen(function*() {
      const { hook, sim } = yield* faulty({ kind: "late", delayMs: 3_600_000 })
      assert.deepStrictEqual(types(hook.got), ["charge.refunded"])
      yield* sim.advanceClock("61 minutes")
      yield* sim.webhooks.settled
      assert.deepStrictEqual(types(hook.got), ["charge.refunded", "charge.succeeded"])
      assert.strictEqual((yield* verify(sim, hook.got[1]!)).error, "")
    }))

  it.effect("drop: it never comes, and is in the list of events all the same", () =>
    Effect.gen(function*() {
      const { hook, sim } = yield* faulty({ kind: "drop" })
      assert.deepStrictEqual(types(hook.got), ["charge.refunded"])
      const undelivered = yield* call(() => sdk(sim).events.list({ delivery_success: false }))
      assert.deepStrictEqual(undelivered.data.map(({ type }) => type), ["charge.succeeded"])
      assert.isTrue(yield* sim.webhooks.resend(undelivered.data[0]!.id))
      yield* sim.webhooks.settled
      assert.strictEqual(types(hook.got).at(-1), "charge.succeeded")
      assert.isFalse(yield* sim.webhooks.resend("evt_none"))
    }))

  it.effect("wrongSignature, tampered, timestamp: the SDK refuses them", () =>
    Effect.gen(function*() {
      const errorOf = (action: WebhookFaultAction) =>
        Effect.flatMap(faulty(action), ({ hook, sim }) => Effect.map(verify(sim, hook.got[0]!), ({ error }) => error))
      assert.include(yield* errorOf({ kind: "wrongSignature" }), "No signatures found")
      assert.include(yield* errorOf({ kind: "tampered" }), "No signatures found")
      assert.include(yield* errorOf({ kind: "timestamp", offsetMs: -301_000 }), "Timestamp outside the tolerance zone")
      assert.strictEqual(yield* errorOf({ kind: "timestamp", offsetMs: -60_000 }), "")
    }))

  it.effect("what is not taken is tried again on the clock, a few times", () =>
    Effect.gen(function*() {
      const hook = yield* receiver
      const sim = yield* StripeSim.make({ webhooks: [{ url: hook.url, secret, events: ["charge.succeeded"] }] })
      hook.answers.push(500, 302)
      yield* charge(sim)
      yield* sim.webhooks.settled
      yield* sim.advanceClock("2 minutes")
      yield* sim.webhooks.settled
      yield* sim.advanceClock("1 hour")
      yield* sim.webhooks.settled
      assert.deepStrictEqual((yield* sim.webhooks.deliveries).map(({ attempt, status }) => [attempt, status]), [[1, 500], [2, 302], [3, 200]])
      assert.strictEqual(new Set(ids(hook.got)).size, 1)
      const [event] = (yield* call(() => sdk(sim).events.list())).data
      assert.strictEqual(event?.pending_webhooks, 0)
    }))

  it.effect("a receiver that is down loses nothing before the last attempt", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make({ webhooks: [{ url: "http://127.0.0.1:1/hook", secret }] })
      yield* charge(sim)
      for (let n = 0; n < 6; n++) {
        yield* sim.webhooks.settled
        yield* sim.advanceClock("4 hours")
      }
      yield* sim.webhooks.settled
      assert.deepStrictEqual((yield* sim.webhooks.deliveries).map(({ status }) => status), [null, null, null, null])
    }))

  it.effect("endpoints are managed through the API, the secret is shown once", () =>
    Effect.gen(function*() {
      const hook = yield* receiver
      const sim = yield* StripeSim.make()
      const stripe = sdk(sim)
      const made = yield* call(() => stripe.webhookEndpoints.create({ url: hook.url, enabled_events: ["charge.succeeded"] }))
      assert.match(made.secret ?? "", /^whsec_/)
      assert.isUndefined((yield* call(() => stripe.webhookEndpoints.retrieve(made.id))).secret)
      yield* charge(sim)
      yield* call(() => stripe.webhookEndpoints.update(made.id, { disabled: true }))
      yield* charge(sim)
      yield* call(() => stripe.webhookEndpoints.update(made.id, { disabled: false, enabled_events: ["*"] }))
      yield* call(() => stripe.paymentIntents.create({ amount: 100, currency: "usd" }))
      assert.strictEqual((yield* call(() => stripe.webhookEndpoints.list())).data.length, 1)
      yield* sim.webhooks.settled
      yield* call(() => stripe.webhookEndpoints.del(made.id))
      yield* charge(sim)
      yield* sim.webhooks.settled
      assert.deepStrictEqual(types(hook.got), ["charge.succeeded", "payment_intent.created"])
      assert.strictEqual((yield* refusal(() => stripe.webhookEndpoints.create({ url: "nowhere", enabled_events: ["*"] }))).code, "url_invalid")
    }))

  it.effect("everything is there over the admin interface", () =>
    Effect.gen(function*() {
      const hook = yield* receiver
      const sim = yield* StripeSim.make()
      const post = (path: string, value: unknown) => raw(sim, `/_sim/${path}`, { body: JSON.stringify(value) })
      assert.match((yield* post("webhooks", { url: hook.url })).json.secret, /^whsec_/)
      yield* post("webhooks/faults", [{ action: { kind: "repeat", times: 1 } }, { action: { kind: "reorder", behind: 5 }, match: { nth: 2 } }])
      yield* charge(sim)
      yield* call(() => sdk(sim).paymentIntents.create({ amount: 100, currency: "usd" }))
      yield* sim.webhooks.settled
      assert.deepStrictEqual(types(hook.got), ["charge.succeeded", "charge.succeeded"])
      yield* post("webhooks/release", {})
      yield* sim.webhooks.settled
      assert.strictEqual((yield* raw(sim, "/_sim/webhooks/deliveries")).json.length, 3)
      assert.strictEqual((yield* post(`webhooks/resend/${ids(hook.got)[0]}`, {})).status, 200)
      assert.strictEqual((yield* post("webhooks/resend/evt_0", {})).status, 404)
      assert.strictEqual((yield* raw(sim, "/_sim/webhooks/faults", { method: "DELETE" })).status, 200)
    }))
})
