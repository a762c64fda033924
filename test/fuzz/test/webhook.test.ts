/**
 * Webhook calls, header and body. 200 is said only for what Stripe's own SDK verifies, too, and the event that is kept is the one that the SDK
 * reads. An input is the header, a line break, and the body; `SIGNED` in the header is a genuine signature of that body.
 */
import { assert, layer } from "@effect/vitest"
import { type WebhookEvent, WebhookSource } from "@purser/core"
import { WebhookHttp, Webhooks } from "@purser/engine"
import { StripeWebhooks } from "@purser/stripe"
import { Arbitrary, Context, Effect, Layer, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { TestClock } from "effect/testing"
import { createHmac } from "node:crypto"
import { Stripe } from "stripe"
import { fuzz } from "../src/fuzz.ts"
import { between, mutated, noise, oneOf } from "../src/Mutation.ts"

const secret = "whsec_fuzz_secret_of_the_endpoint"
const nowS = 1_785_600_000

class Kept extends Context.Service<Kept, Array<WebhookEvent>>()("@purser/test-fuzz/Kept") {}

/** The endpoint over a verification that is real and an inbox that is a list. */
const endpoint = WebhookHttp.layer.pipe(
  Layer.provide(Layer.effect(Webhooks, Effect.gen(function*() {
    const source = yield* WebhookSource
    const kept = yield* Kept
    return Webhooks.of({
      receive: (body, signature) => Effect.map(source.open(body, signature), (event) => ({ eventId: event.id, fresh: kept.push(event) === 1 })),
      settleDue: Effect.succeed({ done: 0, postponed: 0 }),
      run: Effect.never
    })
  }))),
  Layer.provide(StripeWebhooks.layer({ secrets: [Redacted.make(secret)] })),
  Layer.provideMerge(Layer.sync(Kept, () => []))
)

const stripe = new Stripe("sk_test_fuzz")

const property = Effect.fnUntraced(function*(bytes: Buffer) {
  yield* TestClock.setTime(nowS * 1000)
  const kept = yield* Kept
  kept.length = 0
  const end = bytes.indexOf("\n")
  const head = end < 0 ? bytes : bytes.subarray(0, end)
  const body = Buffer.from(end < 0 ? Buffer.alloc(0) : bytes.subarray(end + 1))
  const genuine = createHmac("sha256", secret).update(`${nowS}.`).update(body).digest("hex")
  // What no HTTP server lets through as a header is not given to the handler either.
  const header = head.toString("latin1").replaceAll(/[^\x20-\x7e\x80-\xff]/g, "").replaceAll("SIGNED", genuine).trim()
  const request = new Request("http://127.0.0.1/webhooks", { method: "POST", body, headers: { "stripe-signature": header } })
  const { handle } = yield* WebhookHttp
  const { status } = yield* Effect.provideService(handle, HttpServerRequest.HttpServerRequest, HttpServerRequest.fromWeb(request))
  assert.include([200, 400], status)
  assert.strictEqual(kept.length, status === 200 ? 1 : 0)
  if (status !== 200) return false
  // The SDK takes no white space and throws at names without a value: it is given the time and the signature alone.
  const times = [...header.matchAll(/(?:^|,)\s*t\s*=\s*([^,\s]*)/g)].map(([, time]) => time!)
  const signature = times.length === 1 ? createHmac("sha256", secret).update(`${times[0]}.`).update(body).digest("hex") : ""
  assert.isTrue(signature !== "" && header.includes(signature), header)
  const event: Stripe.Event = stripe.webhooks.constructEvent(body, `t=${times[0]},v1=${signature}`, secret, 300, undefined, nowS * 1000)
  const [mine] = kept
  assert.deepStrictEqual([mine!.id, mine!.type, mine!.createdMs], [event.id, event.type, event.created * 1000])
  assert.strictEqual(mine!.account, event.account ?? null)
  if (mine!.objectId !== null) {
    assert.strictEqual(mine!.objectId, (event.data.object as { readonly id?: string }).id)
    assert.match(mine!.objectId, /^(?:pi|dp|du|pdp|re|pyr|in|ch|py|cus)_\w+$/)
  }
  return true
})

const call = Arbitrary.map(
  Arbitrary.all({ type: oneOf(["payment_intent.succeeded", "charge.refunded", "charge.dispute.created", "invoice.paid", "customer.updated", "balance.available"]), prefix: oneOf(["pi", "ch", "dp", "in", "cus"]), number: between(1, 99) }),
  ({ number, prefix, type }) =>
    `t=${nowS},v1=SIGNED\n${JSON.stringify({ id: `evt_${number}`, object: "event", type, created: nowS - number, data: { object: { id: `${prefix}_${number}`, object: "any" } } })}`
)
const words = ["v1=", "v0=", ",v1=SIGNED", "SIGNED", `t=${nowS}`, "t=1,", `,t=${nowS + 9999}`, "\"id\":\"evt_2\",", "\"account\":\"acct_1\",", "\"object\":{},", "../customers/cus_1", "\"created\":-1,", "evt_"]

layer(endpoint)("the endpoint", (it) => {
  it.effect("says 200 to what is signed", Effect.fnUntraced(function*() {
    yield* property(Buffer.from(`t=${nowS},v1=SIGNED\n${JSON.stringify({ id: "evt_1", object: "event", type: "invoice.paid", created: nowS, data: { object: { id: "in_1" } } })}`))
    assert.deepStrictEqual((yield* Kept).map(({ id, objectId }) => [id, objectId]), [["evt_1", "in_1"]])
  }))
  fuzz(it, "webhook", {
    runs: 300,
    inputs: { "a call, changed": mutated(call, words), "noise": noise },
    property
  })
})
