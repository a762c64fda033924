/**
 * Removes what must not be in a message: our key, whatever echoes it, and anything that looks like a key or a client
 * secret. Stripe itself repeats a masked key in its 401 and 403 messages; a proxy may repeat the whole header.
 */
import { Redacted } from "effect"

const limit = 500

/** A function that removes one key from a text and leaves the rest as it is. */
export const makeHideKey = (key: Redacted.Redacted) => (text: string): string => {
  const secret = Redacted.value(key)
  return text.length < secret.length ? text : text.replaceAll(secret, "[key]")
}

/** A function that cleans and shortens a text for one key. */
export const makeScrub = (key: Redacted.Redacted) => (text: string): string => {
  const clean = makeHideKey(key)(text)
    .replace(/\b(?:sk|rk|pk|whsec)_[A-Za-z0-9_*.…]+/g, "[key]")
    .replace(/\b((?:pi|seti)_[A-Za-z0-9]+)_secret_[A-Za-z0-9]+/g, "$1_secret_[hidden]")
    .replace(/\p{Cc}+/gu, " ")
  return clean.length > limit ? `${clean.slice(0, limit)}…` : clean
}
