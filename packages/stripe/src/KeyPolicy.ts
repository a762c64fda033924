/**
 * Which Stripe keys may charge: a restricted key, any secret key of the test mode, or a vault key of the spend-cap proxy.
 *
 * An unrestricted live key can refund, pay out and read everything; a worker that only charges must not hold one. It is
 * refused unless that is allowed by name. The key's text never leaves this module.
 */
import { Effect, Redacted } from "effect"
import { type KeyProblem, KeyRefused, StripeConfigError } from "./StripeConfigError.ts"

/** What is wrong with a key, or `undefined` when it may be used. */
export const keyProblem = (key: Redacted.Redacted, allowUnrestricted: boolean): KeyProblem | undefined => {
  const text = Redacted.value(key)
  if (text === "") return "empty"
  if (/\s/.test(text)) return "white_space"
  if (text.startsWith("pk_")) return "publishable"
  // Of the spend-cap proxy: worth nothing to Stripe itself, and no more than its cap to the proxy.
  if (/^vk_[0-9a-f]{48}$/.test(text)) return undefined
  const kind = /^(sk|rk)_(test|live)_[A-Za-z0-9_]{1,240}$/.exec(text)
  if (kind === null) return "malformed"
  return kind[1] === "sk" && kind[2] === "live" && !allowUnrestricted ? "unrestricted" : undefined
}

/** The key as it is, or `StripeConfigError` with `KeyRefused`. */
export const checkKey = (
  key: Redacted.Redacted,
  allowUnrestricted: boolean
): Effect.Effect<Redacted.Redacted, StripeConfigError> => {
  const problem = keyProblem(key, allowUnrestricted)
  return problem === undefined ? Effect.succeed(key) : Effect.fail(new StripeConfigError({ reason: new KeyRefused({ problem }) }))
}
