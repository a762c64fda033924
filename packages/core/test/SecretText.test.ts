/** What strangers wrote is shown without secrets: those of the settings, and what looks like one. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Redacted } from "effect"
import { SecretText } from "../src/SecretText.ts"

const config = Layer.succeed(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown({
  PURSER_STRIPE_KEY: "sk_live_of_the_settings",
  PURSER_WEBHOOK_SECRET: "whsec_firstfirst,whsec_secondsecond",
  PURSER_CONSOLE_TOKEN: "correct horse battery",
  PURSER_OTLP_HEADERS: "x-token=collector%20token",
  PURSER_DATABASE_URL: "postgres://app:p%40ss,word-of-app@db.example/led"
}))
const hiding = Effect.provide(SecretText, SecretText.layer([Redacted.make("told-by-the-program")]).pipe(Layer.provide(config)))

describe("texts of strangers", () => {
  it.effect("are shown without the secrets of the settings, however they came there", () =>
    Effect.gen(function*() {
      const { hide } = yield* hiding
      const secrets = [
        "sk_live_of_the_settings", "whsec_secondsecond", "correct horse battery", "collector%20token", "collector token", "p%40ss,word-of-app", "p@ss,word-of-app",
        "told-by-the-program", btoa("sk_live_of_the_settings:"), btoa("correct horse battery:")
      ]
      for (const secret of secrets) assert.strictEqual(hide(`{"a":"é${secret}"}\u0000${secret}`), "{\"a\":\"é[secret]\"}\u0000[secret]", secret)
    }))

  it.effect("are shown without what looks like a secret of anybody's, and else as they are", () =>
    Effect.gen(function*() {
      const { hide } = yield* hiding
      const looks: ReadonlyArray<readonly [string, string]> = [
        ["{\"api_key\":\"rk_live_51Habc\"}", "{\"api_key\":\"[secret]\"}"],
        ["\u0001sk_test_51Habc_def\u0002", "\u0001[secret]\u0002"],
        ["whsec_0123456789", "[secret]"],
        [`vk_${"0a".repeat(24)}`, "[secret]"],
        ["pi_1_secret_AbC of pi_1", "pi_1_secret_[secret] of pi_1"],
        ["postgres://led:hush@db/led and redis://:hush@cache", "postgres://led:[secret]@db/led and redis://:[secret]@cache"]
      ]
      for (const [text, shown] of looks) assert.strictEqual(hide(text), shown)
      const plain = "pi_3 in_4 ch_5 cus_sk_1 pk_42 risk_test_1 vk_12 http://a.example:80/b@c mailto:a@b.example sk_customer"
      assert.strictEqual(hide(plain), plain)
    }))
})
