/**
 * Refunds on Stripe, as layers of `RefundGateway`. They serve payments of every gateway. No layer retries: what may be
 * repeated is the engine's decision.
 */
import { RefundGateway } from "@purser/core"
import { type Config, Effect, Layer } from "effect"
import { makeRefunds } from "./internal/refunds.ts"
import { StripeClient } from "./StripeClient.ts"
import type { StripeConfigError } from "./StripeConfigError.ts"

/** Refunds on a client that is given. */
const layerWith: Layer.Layer<RefundGateway, never, StripeClient> = Layer.effect(RefundGateway, Effect.map(StripeClient, makeRefunds))

/** Refunds from the environment: see `stripeConfig`. The key needs write access to refunds. */
const layer: Layer.Layer<RefundGateway, Config.ConfigError | StripeConfigError> = layerWith.pipe(Layer.provide(StripeClient.layerConfig))

/** The layers. */
export const StripeRefunds = { layer, layerWith } as const
