/**
 * The settings of the Stripe client and where they are read from.
 *
 * A plain-http URL is refused unless its host is this machine: the key would travel in the clear. The API version is no
 * setting: it is the one that the SDK is written for.
 */
import { Config, Duration, Effect, Option, Redacted, Schema } from "effect"
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
  /** Calls a second in all, per account; `"off"` for no limit. Default: Stripe's own limit for the key, none on a loopback address. */
  readonly rate?: number | "off" | undefined
  /** Calls a second to one endpoint, per account; `"off"` for no limit. Default 25, none on a loopback address. */
  readonly endpointRate?: number | "off" | undefined
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
  /** `null` for no limit. */
  readonly allPerSecond: number | null
  readonly endpointPerSecond: number | null
}

/** What Stripe grants: calls a second in all for live keys and for test keys, and to one endpoint. */
export const stripeRates = { live: 100, test: 25, endpoint: 25 } as const

const rateConfig = (name: string) =>
  Config.option(Config.schema(Schema.Union([Schema.Literal("off"), Schema.FiniteFromString.check(Schema.isGreaterThan(0))]), name)).pipe(
    Config.map(Option.getOrUndefined)
  )

/** The default of `PURSER_STRIPE_URL`. */
export const defaultUrl = "https://api.stripe.com"

/**
 * `PURSER_STRIPE_KEY`, `PURSER_STRIPE_URL`, `PURSER_STRIPE_ACCOUNT`, `PURSER_STRIPE_TIMEOUT`,
 * `PURSER_STRIPE_MAX_CONNECTIONS`, `PURSER_STRIPE_RATE`, `PURSER_STRIPE_ENDPOINT_RATE`, `PURSER_ALLOW_UNRESTRICTED_KEY`.
 */
export const stripeConfig: Config.Config<StripeOptions> = Config.all({
  key: Config.Redacted("PURSER_STRIPE_KEY"),
  url: Config.String("PURSER_STRIPE_URL").pipe(Config.withDefault(defaultUrl)),
  account: Config.option(Config.String("PURSER_STRIPE_ACCOUNT")).pipe(Config.map(Option.getOrUndefined)),
  timeout: Config.Duration("PURSER_STRIPE_TIMEOUT").pipe(Config.withDefault(Duration.seconds(30))),
  maxConnections: Config.Int("PURSER_STRIPE_MAX_CONNECTIONS").pipe(Config.withDefault(64)),
  rate: rateConfig("PURSER_STRIPE_RATE"),
  endpointRate: rateConfig("PURSER_STRIPE_ENDPOINT_RATE"),
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
  const url = new URL(text)
  // A simulator has no limits of its own accord; what it enforces when told to is learnt from its refusals.
  const unlimited = isLoopback(url.hostname)
  const rateOf = (name: string, given: number | "off" | undefined, usual: number) =>
    given === "off" || (given === undefined && unlimited) ? Effect.succeed(null)
    : given === undefined || (Number.isFinite(given) && given > 0) ? Effect.succeed(given ?? usual)
    : refuse(new SettingRefused({ name, detail: "it must be a number above 0, or off" }))
  return {
    key,
    url,
    account: options.account,
    timeoutMs,
    maxConnections,
    allPerSecond: yield* rateOf("PURSER_STRIPE_RATE", options.rate, Redacted.value(key).includes("_live_") ? stripeRates.live : stripeRates.test),
    endpointPerSecond: yield* rateOf("PURSER_STRIPE_ENDPOINT_RATE", options.endpointRate, stripeRates.endpoint)
  }
})
