/**
 * Webhooks from the configuration: the handler, and the loop that deals with what it keeps, beside a pipeline that is there.
 */
import type { ChargeGateway, Ledger, RefundLedger, Sightings, WebhookInbox } from "@purser/core"
import { type ChargePipeline, Refunds, WebhookHttp, Webhooks } from "@purser/engine"
import { StripeAccount, type StripeConfigError, StripeRefunds, StripeWebhooks } from "@purser/stripe"
import { type Config, Effect, Layer } from "effect"
import { HttpEffect, type HttpServerRequest } from "effect/http"

/** What webhooks are built on. */
export type WebhookNeeds = ChargeGateway | ChargePipeline | Ledger | RefundLedger | Sightings | WebhookInbox

/** Layers of webhooks. */
export const PurserWebhooks: {
  /** `Webhooks` by `PURSER_WEBHOOK_SECRET` and its neighbours; deals with nothing by itself. */
  readonly layer: Layer.Layer<Webhooks, Config.ConfigError | StripeConfigError, WebhookNeeds>
  /** The handler, with a loop in the background that deals with events as they come. */
  readonly layerServing: Layer.Layer<WebhookHttp | Webhooks, Config.ConfigError | StripeConfigError, WebhookNeeds>
  /** The handler as a function of the web's own types, for servers that know no Effect; it logs as its maker does. */
  readonly webHandler: Effect.Effect<(request: Request) => Promise<Response>, never, WebhookHttp>
} = (() => {
  const refunds = Refunds.layer.pipe(Layer.provide(StripeRefunds.layer))
  const layer = Webhooks.layerNoDeps.pipe(Layer.provide(Layer.mergeAll(StripeWebhooks.layerConfig, StripeAccount.layerConfig, refunds)))
  const loop = Layer.effectDiscard(Effect.flatMap(Webhooks, ({ run }) => Effect.forkScoped(run)))
  return {
    layer,
    layerServing: Layer.mergeAll(WebhookHttp.layer, loop).pipe(Layer.provideMerge(layer)),
    webHandler: Effect.gen(function*() {
      const { handle } = yield* WebhookHttp
      const handler = HttpEffect.toWebHandlerWith<never, HttpServerRequest.HttpServerRequest>(yield* Effect.context<never>())(handle)
      return (request: Request) => handler(request)
    })
  }
})()
