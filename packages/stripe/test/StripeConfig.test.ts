import { assert, describe, it } from "@effect/vitest"
import { checkSettings, StripeClient, type StripeConfigError, StripeGateway } from "@purser/stripe"
import { ConfigProvider, Effect, Layer, Redacted } from "effect"
import { secret, visible } from "./support.ts"

const key = Redacted.make(secret)
const settingsAt = (url: string) => checkSettings({ key, url })

const build = <A, E>(layer: Layer.Layer<A, E>, env: Record<string, string>) =>
  Layer.build(layer).pipe(Effect.scoped, Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(env))))

describe("StripeConfig", () => {
  for (const url of ["https://api.stripe.com", "https://proxy.example/stripe", "http://127.0.0.1:12111", "http://127.8.8.8", "http://localhost:1", "http://[::1]:1"]) {
    it.effect(`speaks to ${url}`, () =>
      Effect.gen(function*() {
        assert.strictEqual((yield* settingsAt(url)).url.href, new URL(url).href)
      }))
  }

  for (const url of ["http://api.stripe.com", "http://10.0.0.1", "http://127.0.0.1.example.com", "http://localhost.example.com", "http://[::2]", "http://0.0.0.0", "ftp://127.0.0.1", "127.0.0.1:12111", "", "https://hush:pass@api.stripe.com", "https://api.stripe.com?x=1", "https://api.stripe.com/#x"]) {
    it.effect(`refuses ${url === "" ? "an empty URL" : url}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(settingsAt(url))
        assert.strictEqual(error.reason._tag, "UrlRefused")
        assert.notInclude(error.message, "hush")
      }))
  }

  it.effect("has the documented defaults", () =>
    Effect.gen(function*() {
      const settings = yield* checkSettings({ key })
      assert.strictEqual(settings.url.href, "https://api.stripe.com/")
      assert.strictEqual(settings.timeoutMs, 30_000)
      assert.strictEqual(settings.maxConnections, 64)
      assert.strictEqual(settings.account, undefined)
    }))

  for (const options of [{ timeout: 0 }, { timeout: "infinity" }, { maxConnections: 0 }, { maxConnections: 1.5 }, { account: "12" }, { account: "acct_1\nX: y" }] as const) {
    it.effect(`refuses ${JSON.stringify(options)}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(checkSettings({
          key,
          ..."timeout" in options ? { timeout: options.timeout === 0 ? 0 : Infinity } : options
        }))
        assert.strictEqual(error.reason._tag, "SettingRefused")
      }))
  }

  it.effect("reads the environment", () =>
    build(StripeClient.layerConfig, {
      PURSER_STRIPE_KEY: secret,
      PURSER_STRIPE_URL: "http://127.0.0.1:9",
      PURSER_STRIPE_TIMEOUT: "10 seconds",
      PURSER_STRIPE_ACCOUNT: "acct_1"
    }))

  it.effect("allows an unrestricted key by name only", () =>
    Effect.gen(function*() {
      const env = { PURSER_STRIPE_KEY: "sk_live_HushHush" }
      const error = yield* Effect.flip(build(StripeGateway.layerPaymentIntents, env))
      assert.strictEqual(error._tag, "StripeConfigError")
      assert.strictEqual((error as StripeConfigError).reason._tag, "KeyRefused")
      assert.notInclude(yield* visible(build(StripeGateway.layerPaymentIntents, env)), "HushHush")
      yield* build(StripeGateway.layerPaymentIntents, { ...env, PURSER_ALLOW_UNRESTRICTED_KEY: "true" })
    }))

  it.effect("a missing key is a ConfigError that names the variable, an empty one is refused", () =>
    Effect.gen(function*() {
      const missing = yield* Effect.flip(build(StripeGateway.layerPaymentIntents, {}))
      assert.strictEqual(missing._tag, "ConfigError")
      assert.include(missing.message, "PURSER_STRIPE_KEY")
      yield* Effect.flip(build(StripeGateway.layerPaymentIntents, { PURSER_STRIPE_KEY: "" }))
    }))

  for (const types of ["Card", "card,,x", "card; drop"]) {
    it.effect(`refuses the payment method types ${JSON.stringify(types)}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(build(StripeGateway.layerPaymentIntents, {
          PURSER_STRIPE_KEY: secret,
          PURSER_STRIPE_PAYMENT_METHOD_TYPES: types
        }))
        assert.strictEqual(error._tag, "StripeConfigError")
      }))
  }
})
