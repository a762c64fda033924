/**
 * The charge gateway on Stripe, as layers of `ChargeGateway`.
 *
 * No layer retries: what may be repeated, and under which key, is the engine's decision.
 */
import { ChargeGateway } from "@purser/core"
import { Config, Effect, Layer } from "effect"
import { makeCharges } from "./internal/charges.ts"
import { makePaymentIntents } from "./internal/paymentIntents.ts"
import { StripeClient } from "./StripeClient.ts"
import { SettingRefused, StripeConfigError } from "./StripeConfigError.ts"

/** `PURSER_STRIPE_PAYMENT_METHOD_TYPES`: a comma-separated list, default `card`; add `us_bank_account` for bank debits. */
export const paymentMethodTypesConfig: Config.Config<ReadonlyArray<string>> = Config.String("PURSER_STRIPE_PAYMENT_METHOD_TYPES").pipe(
  Config.withDefault("card"),
  Config.map((text) => text.split(",").map((name) => name.trim()))
)

/**
 * The gateway on a client that is given. Keep `paymentMethodTypes` as it is while charges are under way: it is a parameter
 * of `create`, and the same key with other parameters is `KeyReused`.
 */
const layerPaymentIntentsWith = (options: {
  readonly paymentMethodTypes?: ReadonlyArray<string> | undefined
} = {}): Layer.Layer<ChargeGateway, StripeConfigError, StripeClient> =>
  Layer.effect(ChargeGateway, Effect.gen(function*() {
    const client = yield* StripeClient
    const paymentMethodTypes = options.paymentMethodTypes ?? ["card"]
    if (paymentMethodTypes.length === 0 || !paymentMethodTypes.every((name) => /^[a-z][a-z0-9_]{0,63}$/.test(name))) {
      const detail = "it must name at least one payment method type, such as card"
      return yield* new StripeConfigError({ reason: new SettingRefused({ name: "PURSER_STRIPE_PAYMENT_METHOD_TYPES", detail }) })
    }
    return makePaymentIntents(client, { paymentMethodTypes })
  }))

/** PaymentIntents in two steps, from the environment: see `stripeConfig` and {@link paymentMethodTypesConfig}. */
const layerPaymentIntents: Layer.Layer<ChargeGateway, Config.ConfigError | StripeConfigError> = Layer.unwrap(
  Effect.map(paymentMethodTypesConfig, (paymentMethodTypes) => layerPaymentIntentsWith({ paymentMethodTypes }))
).pipe(Layer.provide(StripeClient.layerConfig))

/** The one-call API on a client that is given. Its guarantee is weaker than that of the other gateways: see `docs/stripe.md`. */
const layerChargesWith: Layer.Layer<ChargeGateway, never, StripeClient> = Layer.effect(
  ChargeGateway,
  Effect.map(StripeClient, makeCharges)
)

/** The one-call API, from the environment. */
const layerCharges: Layer.Layer<ChargeGateway, Config.ConfigError | StripeConfigError> = layerChargesWith.pipe(
  Layer.provide(StripeClient.layerConfig)
)

/** The gateways on Stripe. */
export const StripeGateway = { layerPaymentIntents, layerPaymentIntentsWith, layerCharges, layerChargesWith } as const
