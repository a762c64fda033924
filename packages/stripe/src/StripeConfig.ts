/**
 * The settings of the Stripe client and where they are read from.
 *
 * A plain-http URL is refused unless its host is this machine: the key would travel in the clear. The API version is no
 * setting: it is the one that the SDK is written for.
 */
import { Config, Duration, Effect, Option, type Redacted } from "effect"
import { isIPv4 } from "node:net"
import { checkKey } from "./KeyPolicy.ts"
import { SettingRefused, StripeConfigError, UrlRefused } from "./StripeConfigError.ts"

/** Settings of the client; everything but the key has a default. */
export interface StripeOptions {
  readonly key: Redacted.Redacted
  /** Default `https://api.stripe.com`. A path before `/v1` is kept, so that a proxy may live under one. */
  readonly url?: string | undefined
  /** A connected account (`acct_…`) that every call is made for. */
  readonly account?: string | undefined
  /** From the moment a connection is free until the last byte of the body; default 30 seconds. */
  readonly timeout?: Duration.Input | undefined
  /** Calls under way at once; more wait. Default 64. */
  readonly maxConnections?: number | undefined
  /** Allows `sk_live_…`. Default false. */
  readonly allowUnrestrictedKey?: boolean | undefined
}

/** Checked settings. */
export interface StripeSettings {
  readonly key: Redacted.Redacted
  readonly url: URL
  readonly account: string | undefined
  readonly timeoutMs: number
  readonly maxConnections: number
}

/** The default of `PURSER_STRIPE_URL`. */
export const defaultUrl = "https://api.stripe.com"

/**
 * `PURSER_STRIPE_KEY`, `PURSER_STRIPE_URL`, `PURSER_STRIPE_ACCOUNT`, `PURSER_STRIPE_TIMEOUT`,
 * `PURSER_STRIPE_MAX_CONNECTIONS`, `PURSER_ALLOW_UNRESTRICTED_KEY`.
 */
export const stripeConfig: Config.Config<StripeOptions> = Config.all({
  key: Config.Redacted("PURSER_STRIPE_KEY"),
  url: Config.String("PURSER_STRIPE_URL").pipe(Config.withDefault(defaultUrl)),
  account: Config.option(Config.String("PURSER_STRIPE_ACCOUNT")).pipe(Config.map(Option.getOrUndefined)),
  timeout: Config.Duration("PURSER_STRIPE_TIMEOUT").pipe(Config.withDefault(Duration.seconds(30))),
  maxConnections: Config.Int("PURSER_STRIPE_MAX_CONNECTIONS").pipe(Config.withDefault(64)),
  allowUnrestrictedKey: Config.Boolean("PURSER_ALLOW_UNRESTRICTED_KEY").pipe(Config.withDefault(false))
})

/** True for names that mean this machine without asking a name server. */
const isLoopback = (hostname: string): boolean =>
  hostname === "localhost" || hostname === "[::1]" || (isIPv4(hostname) && hostname.startsWith("127."))

const urlProblem = (text: string): string | undefined => {
  // The text is not repeated in any message: it may hold a password.
  if (!URL.canParse(text)) return "it is not a URL"
  const url = new URL(text)
  if (url.protocol !== "https:" && url.protocol !== "http:") return "only https and http are spoken"
  if (url.username !== "" || url.password !== "") return "it must not hold a user or a password"
  if (url.search !== "" || url.hash !== "") return "it must not have a query or a fragment"
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    return `plain http to ${url.hostname} would show the key to the network; use https, or a loopback address`
  }
}

/** The settings, or the first thing that is wrong with them. */
export const checkSettings = Effect.fnUntraced(function*(options: StripeOptions): Effect.fn.Return<StripeSettings, StripeConfigError> {
  const refuse = (reason: StripeConfigError["reason"]) => Effect.fail(new StripeConfigError({ reason }))
  const key = yield* checkKey(options.key, options.allowUnrestrictedKey ?? false)
  const text = options.url ?? defaultUrl
  const problem = urlProblem(text)
  if (problem !== undefined) return yield* refuse(new UrlRefused({ detail: problem }))
  if (options.account !== undefined && !/^acct_[A-Za-z0-9_]{1,240}$/.test(options.account)) {
    return yield* refuse(new SettingRefused({ name: "PURSER_STRIPE_ACCOUNT", detail: "an account id looks like acct_…" }))
  }
  const timeoutMs = Duration.toMillis(Duration.fromInputUnsafe(options.timeout ?? "30 seconds"))
  if (!Number.isFinite(timeoutMs) || timeoutMs < 1) {
    return yield* refuse(new SettingRefused({ name: "PURSER_STRIPE_TIMEOUT", detail: "it must be finite and at least 1 ms" }))
  }
  const maxConnections = options.maxConnections ?? 64
  if (!Number.isInteger(maxConnections) || maxConnections < 1 || maxConnections > 10_000) {
    return yield* refuse(new SettingRefused({ name: "PURSER_STRIPE_MAX_CONNECTIONS", detail: "it must be 1 to 10000" }))
  }
  return { key, url: new URL(text), account: options.account, timeoutMs, maxConnections }
})
