/**
 * Purser with batteries: the engine, the stores and Stripe from the configuration, as one layer for Effect programs and
 * as one object for programs that do not use Effect.
 */
import { type ChargeOutcome, ChargeRequest, type PipelineError, parsePeriod } from "@purser/core"
import { ChargePipeline } from "@purser/engine"
import { StripeGateway } from "@purser/stripe"
import { ConfigProvider, Effect, Layer, ManagedRuntime, Schema } from "effect"
import { Stores } from "./Stores.ts"

/** The pipeline on the configured database and Stripe account. */
const layerConfig = ChargePipeline.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(Stores.layerConfig, StripeGateway.layerPaymentIntents))
)

/** What a plain program gives for one charge; amounts in minor units, any accepted spelling of the period. */
export interface ChargeInput {
  readonly customerId: string
  readonly billingPeriod: string
  readonly amountMinor: number
  readonly currency: string
  readonly stripeCustomerId: string
  readonly paymentMethod?: string
  readonly item?: string
  readonly namespace?: string
}

/** A running Purser for programs without Effect. Each rejection is one of the typed errors of `@purser/core`. */
export interface PurserHandle {
  /** Charges exactly once; the same identity again resolves with the recorded outcome. */
  readonly charge: (input: ChargeInput) => Promise<ChargeOutcome>
  /** Finishes what is in work and closes the database. */
  readonly close: () => Promise<void>
}

const decodeRequest = Schema.decodeUnknownEffect(ChargeRequest)

const charge = Effect.fnUntraced(function*(input: ChargeInput): Effect.fn.Return<ChargeOutcome, PipelineError | Schema.SchemaError | Error, ChargePipeline> {
  const pipeline = yield* ChargePipeline
  const period = yield* Effect.fromResult(parsePeriod(input.billingPeriod))
  const request = yield* decodeRequest({
    ...input,
    namespace: input.namespace ?? "zmq-billing",
    billingPeriod: period,
    currency: input.currency.toLowerCase()
  })
  return yield* pipeline.charge(request)
})

/** Purser as a layer, and as an object. */
export const Purser = {
  layerConfig,
  /** Starts Purser with these configuration keys (`PURSER_DATABASE_URL`, `PURSER_STRIPE_KEY`, …) on top of the environment's. */
  make: async (config: Readonly<Record<string, string>> = {}): Promise<PurserHandle> => {
    const provider = ConfigProvider.orElse(ConfigProvider.fromUnknown(config), ConfigProvider.fromEnv())
    const runtime = ManagedRuntime.make(layerConfig.pipe(Layer.provide(ConfigProvider.layer(provider))))
    await runtime.runPromise(Effect.void)
    return {
      charge: (input) => runtime.runPromise(charge(input)),
      close: () => runtime.dispose()
    }
  }
}
