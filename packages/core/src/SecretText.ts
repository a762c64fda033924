/**
 * Hides secrets in texts that strangers wrote and people read: what came in is kept as it came, and shown without them. Hidden is what
 * this process knows as a secret from its settings, and what looks like a key of Stripe's, a client secret, a vault key or the
 * password of a URL. It is no safeguard for texts of our own: those hold redacted values.
 */
import { Config, Context, Effect, Layer, Option, Redacted, Result } from "effect"

/** What stands in its place. */
const hiddenSecret = "[secret]"

/** Shorter ones are words that occur anywhere. */
const knownMin = 8

/** Settings that hold one secret or several, whether this command uses them or not. */
const settings = [
  "PURSER_STRIPE_KEY", "PURSER_PROXY_STRIPE_KEY", "PURSER_WEBHOOK_SECRET", "PURSER_CONSOLE_TOKEN", "PURSER_CONSOLE_VIEWER_TOKEN", "PURSER_DUNNING_FINAL_TOKEN",
  "PURSER_OTLP_HEADERS", "PURSER_DATABASE_URL", "PURSER_SOURCE_DATABASE_URL", "PURSER_PROXY_DATABASE_URL"
] as const

const looks: ReadonlyArray<readonly [RegExp, string]> = [
  [/(?<![A-Za-z0-9])(?:(?:sk|rk)_(?:test|live|org)_\w{4,}|whsec_[\w+/=-]{8,}|vk_[0-9a-f]{48})/g, hiddenSecret],
  [/((?:pi|seti)_[A-Za-z0-9]+_secret_)\w+/g, `$1${hiddenSecret}`],
  [/([a-z][a-z0-9+.-]*:\/\/[^\s:@/"'\\]*:)[^\s@/"'\\]+@/gi, `$1${hiddenSecret}@`]
]

const decoded = (text: string): string => Result.getOrElse(Result.try(() => decodeURIComponent(text)), () => text)

/** The secrets of one setting: each of a list by comma, the value of a header, the password of a URL. */
const partsOf = (secret: Redacted.Redacted): ReadonlyArray<string> =>
  (/^[a-z][a-z0-9+.-]*:\/\//i.test(Redacted.value(secret)) ? [Redacted.value(secret)] : Redacted.value(secret).split(",")).flatMap((part) => {
    const password = /^[a-z][a-z0-9+.-]*:\/\/[^:@/]*:([^@]*)@/i.exec(part)?.[1]
    if (password !== undefined) return [part, password, decoded(password)]
    const value = /^[\w-]+=(.+)$/.exec(part)?.[1]
    return value === undefined ? [part] : [part, value, decoded(value)]
  })

/** As it stands, as bytes of UTF-8 that are read one by one, and as the user of Basic authentication, which is how Stripe's clients send a key too. */
const written = (secret: string): ReadonlyArray<string> => {
  const bytes = String.fromCharCode(...new TextEncoder().encode(secret))
  return [...new Set([secret, bytes, btoa(`${bytes}:`)])]
}

/** The service. */
export class SecretText extends Context.Service<SecretText, {
  /** The text with every secret in it hidden; the same text where there is none. */
  readonly hide: (text: string) => string
}>()("@purser/core/SecretText") {
  /** Over the settings of this process, and further secrets that it was given otherwise. */
  static readonly layer = (more: ReadonlyArray<Redacted.Redacted> = []): Layer.Layer<SecretText, Config.ConfigError> =>
    Layer.effect(SecretText, Effect.gen(function*() {
      const given = yield* Effect.forEach(settings, (name) => Config.option(Config.Redacted(name)))
      const known = [...new Set([...given.flatMap((secret) => Option.isSome(secret) ? [secret.value] : []), ...more].flatMap(partsOf))]
        .filter((secret) => secret.length >= knownMin)
        .flatMap(written)
        .toSorted((a, b) => b.length - a.length)
      return SecretText.of({
        hide: (text) => {
          const without = known.reduce((left, secret) => left.replaceAll(secret, hiddenSecret), text)
          return looks.reduce((left, [look, instead]) => left.replace(look, instead), without)
        }
      })
    }))
}
