/** A world with webhooks: events as Stripe sends them, signed with the endpoint's secret, and the calls of somebody else at Stripe. */
import type { ProcessorAccount, ReconcileBook, Sightings, WebhookInbox, WebhookSource } from "@purser/core"
import { Reconciler, WebhookHttp, Webhooks } from "@purser/engine"
import { PgReconcileBook, PgSightings, PgWebhookInbox } from "@purser/postgres"
import type * as TestDatabase from "@purser/postgres/TestDatabase"
import { StripeAccount, StripeClient, StripeGateway, StripeWebhooks } from "@purser/stripe"
import { StripeSim } from "@purser/stripe-sim"
import { Clock, Effect, Layer, Redacted } from "effect"
import { Stripe } from "stripe"
import { type GatewayLayer, world, type WorldServices } from "./World.ts"

/** The endpoint's secret. */
export const webhookSecret = "whsec_of_the_endpoint_under_test"

/** Everything that a test of webhooks can reach. */
export type WatchServices = WorldServices | Webhooks | WebhookHttp | Reconciler | ReconcileBook | WebhookInbox | Sightings | ProcessorAccount | WebhookSource

/** The account as a reader sees it. */
export const account = Layer.unwrap(Effect.map(StripeSim, (sim) =>
  StripeAccount.layer().pipe(Layer.provide(StripeClient.layer({ key: Redacted.make("rk_test_reader"), url: sim.url, timeout: "2 seconds" })))))

/** A world that takes webhooks; bank debits are allowed, so that charges may settle later. */
export const watchWorld = (
  database: (typeof TestDatabase.layers)[number][1],
  gateway: GatewayLayer = StripeGateway.layerPaymentIntentsWith({ paymentMethodTypes: ["card", "us_bank_account"] })
) =>
  WebhookHttp.layer.pipe(
    Layer.provideMerge(Layer.mergeAll(Webhooks.layerNoDeps, Reconciler.layerNoDeps)),
    Layer.provideMerge(Layer.mergeAll(PgReconcileBook.layer, PgWebhookInbox.layer, PgSightings.layer, account, StripeWebhooks.layer({ secrets: [Redacted.make(webhookSecret)] }))),
    Layer.provideMerge(world(database, {}, gateway))
  )

/** A type and the object that it is about. */
export interface Sent {
  readonly id: string
  readonly type: string
  readonly objectId: string
  readonly createdS?: number
  readonly account?: string
}

/** The bytes of an event and the header that signs them now. */
export const signed = Effect.fnUntraced(function*(sent: Sent, secret = webhookSecret) {
  const nowS = Math.floor((yield* Clock.currentTimeMillis) / 1000)
  const payload = JSON.stringify({
    object: "event", id: sent.id, type: sent.type, created: sent.createdS ?? nowS, livemode: false,
    ...(sent.account === undefined ? {} : { account: sent.account }),
    // What an event claims about its object is a trap for whoever believes it.
    data: { object: { id: sent.objectId, status: "canceled", amount: 1, metadata: { charge_key: "f".repeat(32) } } }
  })
  return { body: Buffer.from(payload), header: Stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp: nowS }) }
})

/** Delivers an event and deals with all that is due. */
export const deliver = Effect.fnUntraced(function*(sent: Sent) {
  const webhooks = yield* Webhooks
  const { body, header } = yield* signed(sent)
  const receipt = yield* webhooks.receive(body, header)
  yield* webhooks.settleDue
  return receipt.fresh
})

/** A call of somebody else: the Dashboard, another program. */
export const elsewhere = (method: "GET" | "POST", path: string, params: Readonly<Record<string, string>> = {}, account?: string) =>
  Effect.flatMap(StripeSim, (sim) =>
    Effect.promise(() =>
      fetch(`${sim.url}${path}`, {
        method,
        headers: { authorization: "Bearer sk_test_elsewhere", "content-type": "application/x-www-form-urlencoded", ...(account === undefined ? {} : { "stripe-account": account }) },
        ...(method === "POST" ? { body: new URLSearchParams(params).toString() } : {})
      }).then((answer) => answer.json() as Promise<Record<string, unknown>>)
    ))
