/**
 * Answers of Stripe's, through the gateway as it is. A payment is read only from a 200 that holds that payment, and is what `JSON.parse` finds
 * there; everything else is a typed error that says what is known about the money, and holds no secret. `answer`: a status and a body;
 * `exchange`: all bytes of the connection.
 */
import { assert, layer } from "@effect/vitest"
import { ChargeError, ChargeGateway, ChargeRequest, type GatewayPayment } from "@purser/core"
import { StripeClient, StripeGateway } from "@purser/stripe"
import { Arbitrary, Context, Effect, Layer, Redacted, Schema } from "effect"
import * as net from "node:net"
import { fuzz } from "../src/fuzz.ts"
import { between, mutated, noise, oneOf } from "../src/Mutation.ts"

const secret = "rk_test_51FuzzFuzzVerySecret"

/** A server that answers each connection with the bytes that are set, and closes it. */
class Answering extends Context.Service<Answering, { bytes: Buffer; readonly url: string }>()("@purser/test-fuzz/Answering") {
  static readonly layer = Layer.effect(Answering, Effect.gen(function*() {
    const state = { bytes: Buffer.alloc(0), url: "" }
    const server = yield* Effect.acquireRelease(
      Effect.callback<net.Server>((resume) => {
        const listening = net.createServer((socket) => {
          socket.on("error", () => undefined)
          socket.once("data", () => socket.end(state.bytes))
        }).listen(0, "127.0.0.1", () => resume(Effect.succeed(listening)))
      }),
      (server) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
    )
    const address = server.address()
    state.url = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`
    return state
  }))
}

const gateway = Layer.unwrap(Effect.map(Answering, ({ url }) =>
  StripeGateway.layerPaymentIntentsWith().pipe(Layer.provide(StripeClient.layer({ key: Redacted.make(secret), url }))))).pipe(Layer.provideMerge(Answering.layer))

const request = Schema.decodeSync(ChargeRequest)({
  namespace: "zmq-billing", customerId: "cust_1", billingPeriod: "2026-07", amountMinor: 1234, currency: "usd", stripeCustomerId: "cus_1"
})
const order = { chargeKey: request.chargeKey, request, generation: 1 }
const wire = Schema.encodeSync(Schema.fromJsonString(Schema.toCodecJson(ChargeError)))

/** What the gateway makes of these bytes, for both calls that move money. */
const ask = Effect.fnUntraced(function*(bytes: Buffer) {
  const answering = yield* Answering
  answering.bytes = bytes
  const { confirm, create } = yield* ChargeGateway
  const results: Array<GatewayPayment> = []
  for (const call of [create(order, ""), confirm(order, { id: "pi_1", attempt: 1, paymentMethod: "pm_1", keySuffix: "" })]) {
    const result = yield* Effect.match(call, { onFailure: (error) => error, onSuccess: (payment) => payment })
    if (result instanceof ChargeError) {
      assert.include(["unknown", "not_charged"], result.outcome)
      const text = wire(result)
      assert.notInclude(text, secret)
      assert.notInclude(text, "secret_Hush")
    } else results.push(result)
  }
  return results
})

const intent = Arbitrary.map(
  Arbitrary.all({ status: oneOf(["succeeded", "processing", "requires_action", "requires_payment_method", "requires_confirmation", "canceled"]), amount: between(1, 9999) }),
  ({ amount, status }) => ({
    id: "pi_1", object: "payment_intent", status, amount, amount_received: status === "succeeded" ? amount : 0, currency: "usd", customer: "cus_1", latest_charge: "ch_1",
    client_secret: "pi_1_secret_Hush", metadata: { charge_key: order.chargeKey, generation: "1" }, last_payment_error: null
  })
)
const code = oneOf(["200", "200", "200", "201", "400", "402", "404", "409", "429", "500"])
const problem = (type: string) => ({ error: { type, code: "card_declined", message: `no: ${secret}`, payment_intent: { id: "pi_1", object: "payment_intent", status: "succeeded", amount: 1 } } })
const answer = Arbitrary.map(Arbitrary.all([code, intent, oneOf(["card_error", "invalid_request_error", "api_error", "idempotency_error"])]), ([status, paid, type]) =>
  `${status}\n${JSON.stringify(status.startsWith("2") ? paid : problem(type))}`)
const words = ["\"status\":\"succeeded\",", "\"amount\":1,", "\"amount_received\":1,", "\"customer\":{\"id\":\"cus_9\"},", "\"customer\":[],", "\"object\":\"charge\",", "\"currency\":\"\",", "\"error\":{},", "\"id\":\"\",", "\"metadata\":{\"charge_key\":1},", "requires_capture"]

const split = (bytes: Buffer): readonly [status: number, body: Buffer] => {
  const at = bytes.indexOf("\n")
  const status = Number(bytes.subarray(0, Math.max(0, at)).toString("latin1"))
  return [Number.isSafeInteger(status) && status >= 200 && status < 600 ? status : 200, bytes.subarray(at + 1)]
}
const exchange = (status: number, body: Buffer) =>
  Buffer.concat([Buffer.from(`HTTP/1.1 ${status} X\r\ncontent-type: application/json\r\nrequest-id: req_1\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n`), body])

layer(gateway, { excludeTestServices: true })("the gateway", (it) => {
  it.effect("reads a payment that is one", Effect.fnUntraced(function*() {
    const body = Buffer.from(JSON.stringify({ id: "pi_1", object: "payment_intent", status: "succeeded", amount: 1234, amount_received: 1234, currency: "usd", customer: "cus_1" }))
    assert.deepStrictEqual((yield* ask(exchange(200, body))).map(({ amountReceivedMinor, status }) => [status, amountReceivedMinor]), [["succeeded", 1234], ["succeeded", 1234]])
  }))

  fuzz(it, "answer", {
    runs: 60,
    inputs: { "an answer, changed": mutated(answer, words) },
    property: Effect.fnUntraced(function*(bytes) {
      const [status, body] = split(bytes)
      const payments = yield* ask(exchange(status, body))
      for (const payment of payments) {
        const json = JSON.parse(body.toString("utf8")) as Record<string, unknown>
        const whole = status === 200 ? json : (json["error"] as Record<string, unknown>)["payment_intent"] as Record<string, unknown>
        const customer = whole["customer"] as { readonly id: string } | string | null | undefined
        assert.deepStrictEqual(
          [payment.id, payment.amountMinor, payment.amountReceivedMinor, payment.currency, payment.stripeCustomerId],
          [whole["id"], whole["amount"], whole["amount_received"] ?? 0, whole["currency"], typeof customer === "string" ? customer : customer?.id ?? null]
        )
        assert.strictEqual(payment.status === "succeeded", whole["status"] === "succeeded")
        assert.isTrue(Number.isSafeInteger(payment.amountMinor))
      }
      return payments.length > 0
    })
  })

  fuzz(it, "exchange", {
    runs: 30,
    inputs: {
      "a connection, changed": mutated(Arbitrary.map(answer, (text) => exchange(...split(Buffer.from(text))).toString("utf8")), ["transfer-encoding: chunked\r\n", "content-length: 1\r\n", "HTTP/1.1 200 X\r\n\r\n", "HTTP/1.1 101 X\r\n", "HTTP/1.1 100 X\r\n\r\n", "location: /\r\n", "5\r\n"]),
      "noise": noise
    },
    property: (bytes) => Effect.map(ask(bytes), (payments) => payments.length > 0)
  })
})
