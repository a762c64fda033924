/**
 * Why the Stripe client was not built: nothing was sent, and nothing will be until the configuration is corrected.
 *
 * No error here holds the key, a part of it, or the user part of a URL.
 */
import { Schema } from "effect"

const id = (name: string) => `@purser/stripe/StripeConfigError/${name}`

const problems = {
  empty: "it is empty",
  publishable: "it is a publishable key (pk_…), which cannot charge; use a restricted key (rk_…)",
  unrestricted: "it is an unrestricted live key (sk_live_…); use a restricted key (rk_live_…) with write access to payment "
    + "intents and read access to customers, or set PURSER_ALLOW_UNRESTRICTED_KEY=true",
  white_space: "it has white space in it, perhaps a line break at its end",
  malformed: "it does not look like a Stripe API key (rk_test_…, rk_live_…, sk_test_…)"
}

/** What is wrong with a key. */
export const KeyProblem = Schema.Literals(["empty", "publishable", "unrestricted", "white_space", "malformed"])
export type KeyProblem = typeof KeyProblem.Type

/** `PURSER_STRIPE_KEY` may not be used. */
export class KeyRefused extends Schema.TaggedError<KeyRefused>(id("KeyRefused"))("KeyRefused", { problem: KeyProblem }) {
  override get message() {
    return `the Stripe key is refused: ${problems[this.problem]}`
  }
  get isRetryable() {
    return false
  }
}

/** `PURSER_STRIPE_URL` may not be used. */
export class UrlRefused extends Schema.TaggedError<UrlRefused>(id("UrlRefused"))("UrlRefused", { detail: Schema.String }) {
  override get message() {
    return `the Stripe URL is refused: ${this.detail}`
  }
  get isRetryable() {
    return false
  }
}

/** Another setting is out of its range. */
export class SettingRefused extends Schema.TaggedError<SettingRefused>(id("SettingRefused"))("SettingRefused", {
  name: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `${this.name} is refused: ${this.detail}`
  }
  get isRetryable() {
    return false
  }
}

/** The configuration of the Stripe client is refused. */
export class StripeConfigError extends Schema.TaggedError<StripeConfigError>("@purser/stripe/StripeConfigError")("StripeConfigError", {
  reason: Schema.Union([KeyRefused, UrlRefused, SettingRefused])
}) {
  override get message() {
    return this.reason.message
  }
  get isRetryable() {
    return false
  }
}
