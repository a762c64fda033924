/**
 * The charge gateway on Stripe, as layers of `ChargeGateway`.
 *
 * No layer retries: what may be repeated, and under which key, is the engine's decision.
 */
import { ChargeGateway } from "@purser/core"
import { Config, Effect, Layer } from "effect"
import { isChargeId, makeCharges } from "./internal/charges.ts"
import { dispatch } from "./internal/dispatch.ts"
import { makeInvoices } from "./internal/invoices.ts"
import { makePaymentIntents } from "./internal/paymentIntents.ts"
import { type InvoiceLines, oneLine } from "./InvoiceLines.ts"
import { StripeClient } from "./StripeClient.ts"
import { SettingRefused, StripeConfigError } from "./StripeConfigError.ts"

/** The names that `PURSER_STRIPE_GATEWAY` takes. */
export const gatewayNames = ["payment_intents", "charges", "invoices"] as const
export type GatewayName = typeof gatewayNames[number]

/** `PURSER_STRIPE_PAYMENT_METHOD_TYPES`: a comma-separated list, default `card`; add `us_bank_account` for bank debits. */
export const paymentMethodTypesConfig: Config.Config<ReadonlyArray<string>> = Config.String("PURSER_STRIPE_PAYMENT_METHOD_TYPES").pipe(
  Config.withDefault("card"),
  Config.map((text) => text.split(",").map((name) => name.trim()))
)

/** Settings of PaymentIntents. */
export interface PaymentIntentLayerOptions {
  readonly paymentMethodTypes?: ReadonlyArray<string> | undefined
}

const checkTypes = Effect.fnUntraced(function*(options: PaymentIntentLayerOptions) {
  const paymentMethodTypes = options.paymentMethodTypes ?? ["card"]
  if (paymentMethodTypes.length === 0 || !paymentMethodTypes.every((name) => /^[a-z][a-z0-9_]{0,63}$/.test(name))) {
    const detail = "it must name at least one payment method type, such as card"
    return yield* new StripeConfigError({ reason: new SettingRefused({ name: "PURSER_STRIPE_PAYMENT_METHOD_TYPES", detail }) })
  }
  return { paymentMethodTypes }
})

/**
 * The gateway on a client that is given. Keep `paymentMethodTypes` as it is while charges are under way: it is a parameter
 * of `create`, and the same key with other parameters is `KeyReused`.
 */
const layerPaymentIntentsWith = (options: PaymentIntentLayerOptions = {}): Layer.Layer<ChargeGateway, StripeConfigError, StripeClient> =>
  Layer.effect(ChargeGateway, Effect.gen(function*() {
    return makePaymentIntents(yield* StripeClient, yield* checkTypes(options))
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

/** Settings of invoices. */
export interface InvoiceLayerOptions {
  /** What stands on an invoice; one line with the whole amount unless told. */
  readonly lines?: InvoiceLines | undefined
}

/** Invoices on a client that is given: each charge is an invoice, made, checked, finalized and paid. */
const layerInvoicesWith = (options: InvoiceLayerOptions = {}): Layer.Layer<ChargeGateway, never, StripeClient> =>
  Layer.effect(ChargeGateway, Effect.map(StripeClient, (client) => makeInvoices(client, options.lines ?? oneLine)))

/** Invoices of one line, from the environment. */
const layerInvoices: Layer.Layer<ChargeGateway, Config.ConfigError | StripeConfigError> = layerInvoicesWith().pipe(
  Layer.provide(StripeClient.layerConfig)
)

/** `PURSER_STRIPE_GATEWAY`: `payment_intents` (the default), `charges` or `invoices`. */
export const gatewayNameConfig = Config.Literals(gatewayNames, "PURSER_STRIPE_GATEWAY").pipe(Config.withDefault("payment_intents" as const))

/**
 * The gateway that is named, on a client that is given. What another gateway of this package has begun it goes on with in
 * that gateway's way, so that the name may change while charges are open.
 */
const layerNamed = (name: GatewayName, options: PaymentIntentLayerOptions & InvoiceLayerOptions = {}): Layer.Layer<ChargeGateway, StripeConfigError, StripeClient> =>
  Layer.effect(ChargeGateway, Effect.gen(function*() {
    const client = yield* StripeClient
    const gateways = {
      payment_intents: makePaymentIntents(client, yield* checkTypes(options)),
      charges: makeCharges(client),
      invoices: makeInvoices(client, options.lines ?? oneLine)
    }
    return dispatch(gateways[name], [
      { gateway: gateways.payment_intents, owns: (id) => id.startsWith("pi_") },
      { gateway: gateways.charges, owns: isChargeId },
      { gateway: gateways.invoices, owns: (id) => id.startsWith("in_") }
    ])
  }))

/** The gateway that the environment names: see {@link gatewayNameConfig}. */
const layerConfig: Layer.Layer<ChargeGateway, Config.ConfigError | StripeConfigError> = Layer.unwrap(
  Effect.gen(function*() {
    return layerNamed(yield* gatewayNameConfig, { paymentMethodTypes: yield* paymentMethodTypesConfig })
  })
).pipe(Layer.provide(StripeClient.layerConfig))

/** The gateways on Stripe. */
export const StripeGateway = {
  layerConfig, layerNamed, layerPaymentIntents, layerPaymentIntentsWith, layerCharges, layerChargesWith,
  layerInvoices, layerInvoicesWith
} as const
