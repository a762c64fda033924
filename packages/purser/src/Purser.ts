/**
 * Purser with batteries: the engine, the stores and Stripe from the configuration, as one layer for Effect programs and
 * as one object for programs that do not use Effect.
 */
import {
  type CapReport, type ChargeOutcome, ChargeRequest, Currency, defaultHeadroomPercent, defaultNamespace, type InvalidPeriod, parsePeriod,
  type PipelineError, SpendCap, type SpendCapError
} from "@purser/core"
import { ChargePipeline, WebhookHttp } from "@purser/engine"
import { StripeGateway } from "@purser/stripe"
import { Config, ConfigProvider, Effect, Layer, ManagedRuntime, Option, Schema } from "effect"
import { PurserWebhooks } from "./PurserWebhooks.ts"
import { Stores } from "./Stores.ts"

/** The pipeline on the configured database and Stripe account. */
const layerConfig = ChargePipeline.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(Stores.layerConfig, StripeGateway.layerConfig))
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

/** What a plain program expects a period's charges to add up to; amounts in minor units. */
export interface CapInput {
  readonly billingPeriod: string
  readonly currency: string
  readonly expectedMinor: number | bigint
  /** Hundredths; 110 unless given. */
  readonly headroomPercent?: number
  readonly namespace?: string
}

/** A running Purser for programs without Effect. Each rejection is one of the typed errors of `@purser/core`. */
export interface PurserHandle {
  /** Charges exactly once; the same identity again resolves with the recorded outcome. */
  readonly charge: (input: ChargeInput) => Promise<ChargeOutcome>
  /** Opens the cap of a period and currency; nothing is charged without one. The same figures again change nothing. */
  readonly openCap: (input: CapInput) => Promise<CapReport>
  /** Answers a call of Stripe's webhooks, to be mounted in any server; rejects unless `PURSER_WEBHOOK_SECRET` is set. */
  readonly webhooks: (request: Request) => Promise<Response>
  /** Finishes what is in work and closes the database. */
  readonly close: () => Promise<void>
}

const decodeRequest = Schema.decodeUnknownEffect(ChargeRequest)

const periodLabels = Config.Literals(["calendar", "opaque"], "PURSER_PERIOD_LABELS").pipe(Config.withDefault("calendar" as const))
const readPeriod = (text: string) => Effect.flatMap(periodLabels, (labels) => Effect.fromResult(parsePeriod(text, { labels })))
const decodeCurrency = Schema.decodeUnknownEffect(Currency)

const charge = Effect.fnUntraced(function*(
  input: ChargeInput
): Effect.fn.Return<ChargeOutcome, PipelineError | Schema.SchemaError | InvalidPeriod | Config.ConfigError, ChargePipeline> {
  const pipeline = yield* ChargePipeline
  const period = yield* readPeriod(input.billingPeriod)
  const request = yield* decodeRequest({
    ...input,
    namespace: input.namespace ?? defaultNamespace,
    billingPeriod: period,
    currency: input.currency.toLowerCase()
  })
  return yield* pipeline.charge(request)
})

const openCap = Effect.fnUntraced(function*(
  input: CapInput
): Effect.fn.Return<CapReport, SpendCapError | Schema.SchemaError | InvalidPeriod | Config.ConfigError, SpendCap> {
  const cap = yield* SpendCap
  return yield* cap.open({
    namespace: input.namespace ?? defaultNamespace,
    billingPeriod: yield* readPeriod(input.billingPeriod),
    currency: yield* decodeCurrency(input.currency.toLowerCase()),
    expectedMinor: BigInt(input.expectedMinor),
    headroomPercent: input.headroomPercent ?? defaultHeadroomPercent
  })
})

/** Webhooks where a secret is configured. */
const withWebhooks = Layer.unwrap(Effect.map(Config.option(Config.Redacted("PURSER_WEBHOOK_SECRET")), (secret) =>
  Option.isSome(secret) ? PurserWebhooks.layerServing : Layer.empty)).pipe(Layer.provideMerge(layerConfig))

const webHandler = Effect.flatMap(Effect.serviceOption(WebhookHttp), (http): Effect.Effect<PurserHandle["webhooks"]> =>
  Option.isSome(http)
    ? Effect.provideService(PurserWebhooks.webHandler, WebhookHttp, http.value)
    : Effect.succeed(() => Promise.reject(new Error("PURSER_WEBHOOK_SECRET is not set"))))

/** Purser as a layer, and as an object. */
export const Purser = {
  layerConfig,
  /** Starts Purser with these configuration keys (`PURSER_DATABASE_URL`, `PURSER_STRIPE_KEY`, …) on top of the environment's. */
  make: async (config: Readonly<Record<string, string>> = {}): Promise<PurserHandle> => {
    const provider = ConfigProvider.orElse(ConfigProvider.fromUnknown(config), ConfigProvider.fromEnv())
    const runtime = ManagedRuntime.make(withWebhooks.pipe(Layer.provideMerge(ConfigProvider.layer(provider))))
    await runtime.runPromise(Effect.void)
    return {
      charge: (input) => runtime.runPromise(charge(input)),
      openCap: (input) => runtime.runPromise(openCap(input)),
      webhooks: await runtime.runPromise(webHandler),
      close: () => runtime.dispose()
    }
  }
}
