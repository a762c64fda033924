/** What the one-call gateway makes of answers that the simulator does not give. */
import { assert, describe, it } from "@effect/vitest"
import { ChargeGateway } from "@purser/core"
import { StripeClient, StripeGateway } from "@purser/stripe"
import { Effect, Layer, Redacted } from "effect"
import { http, orderFor, secret, stub } from "./support.ts"

const order = orderFor()
const missing = { error: { type: "invalid_request_error", code: "resource_missing", param: "customer", message: "No such customer: 'cus_1'" } }

/** A charge under way, where Stripe answers POST and GET like this. */
const confirming = (post: string, get: string) =>
  Effect.scoped(Effect.gen(function*() {
    const server = yield* stub(({ method, socket }) => socket.write(method === "POST" ? post : get))
    const layer = StripeGateway.layerChargesWith.pipe(Layer.provide(StripeClient.layer({ key: Redacted.make(secret), url: server.url })))
    return yield* Effect.gen(function*() {
      const gateway = yield* ChargeGateway
      const { id } = yield* gateway.create(order, "")
      return yield* Effect.flip(gateway.confirm(order, { id, attempt: 1, paymentMethod: "card_1", keySuffix: "" }))
    }).pipe(Effect.provide(layer))
  }))

describe("a charge that is refused", () => {
  it.live("for a customer who is not there, whose charges cannot be listed either, is refused", () =>
    Effect.map(confirming(http(400, missing), http(400, missing)), (error) => {
      assert.deepStrictEqual([error.reason._tag, error.outcome], ["InvalidRequest", "not_charged"])
    }))

  it.live("while the list is refused for another reason, is undecided", () =>
    Effect.map(
      confirming(http(400, missing), http(403, { error: { type: "invalid_request_error", message: "no permission" } })),
      (error) => assert.deepStrictEqual([error.reason._tag, error.outcome], ["UnexpectedAnswer", "unknown"])
    ))

  it.live("while the list breaks, is undecided", () =>
    Effect.map(confirming(http(402, { error: { type: "card_error", code: "card_declined" } }), http(500, "")), (error) =>
      assert.deepStrictEqual([error.reason._tag, error.outcome], ["GatewayUnavailable", "unknown"])))

  it.live("by a proxy in between proves nothing", () =>
    Effect.map(confirming(http(403, "<html>"), http(200, { object: "list", has_more: false, data: [] })), (error) =>
      assert.strictEqual(error.outcome, "unknown")))
})
