/**
 * Where the proxy listens, where it forwards to and with which key. The upstream is fixed here: nothing in a request can
 * change it. Plain http is for loopback addresses alone, on both sides, unless that is allowed by name.
 */
import { Config, Duration, Effect, Option, Redacted, Schema } from "effect"
import { isIPv4 } from "node:net"

/** The proxy cannot be started with these settings. It holds no part of a key. */
export class ProxyConfigError extends Schema.TaggedError<ProxyConfigError>("@purser/spend-cap-proxy/ProxyConfigError")("ProxyConfigError", {
  setting: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `${this.setting} is refused: ${this.detail}`
  }
  get isRetryable() {
    return false
  }
}

/** Settings of the proxy. */
export interface ProxyOptions {
  /** The real, restricted key, known to the proxy alone. */
  readonly stripeKey: Redacted.Redacted
  /** Default `https://api.stripe.com`. */
  readonly upstream?: string | undefined
  /** Where uploads and downloads go; default `https://files.stripe.com`, or the upstream when that is another. */
  readonly filesUpstream?: string | undefined
  readonly host?: string | undefined
  /** Default 12112; 0 takes a free one. */
  readonly port?: number | undefined
  /** Of an answer of Stripe; longer than the clients' (80 seconds). Default 2 minutes. */
  readonly timeout?: Duration.Input | undefined
  /** How long a call waits for the store; a call without a decision by then is refused. Default 5 seconds. */
  readonly storeTimeout?: Duration.Input | undefined
  /** Connections to Stripe; default 128. */
  readonly maxConnections?: number | undefined
  readonly allowPlain?: boolean | undefined
}

/** Checked settings. */
export interface ProxySettings {
  readonly stripeKey: Redacted.Redacted
  readonly upstream: URL
  readonly filesUpstream: URL
  readonly host: string
  readonly port: number
  readonly timeoutMs: number
  readonly storeTimeoutMs: number
  readonly maxConnections: number
}

const defaultUpstream = "https://api.stripe.com"

/** `PURSER_PROXY_STRIPE_KEY` and the other keys of the proxy's page. */
export const proxyConfig: Config.Config<ProxyOptions> = Config.all({
  stripeKey: Config.Redacted("PURSER_PROXY_STRIPE_KEY"),
  upstream: Config.String("PURSER_PROXY_UPSTREAM").pipe(Config.withDefault(defaultUpstream)),
  filesUpstream: Config.option(Config.String("PURSER_PROXY_FILES_UPSTREAM")).pipe(Config.map(Option.getOrUndefined)),
  host: Config.String("PURSER_PROXY_HOST").pipe(Config.withDefault("127.0.0.1")),
  port: Config.Int("PURSER_PROXY_PORT").pipe(Config.withDefault(12112)),
  timeout: Config.Duration("PURSER_PROXY_TIMEOUT").pipe(Config.withDefault(Duration.minutes(2))),
  storeTimeout: Config.Duration("PURSER_PROXY_STORE_TIMEOUT").pipe(Config.withDefault(Duration.seconds(5))),
  maxConnections: Config.Int("PURSER_PROXY_MAX_CONNECTIONS").pipe(Config.withDefault(128)),
  allowPlain: Config.Boolean("PURSER_PROXY_ALLOW_PLAIN").pipe(Config.withDefault(false))
})

const isLoopback = (host: string): boolean => host === "localhost" || host === "[::1]" || host === "::1" || (isIPv4(host) && host.startsWith("127."))

const readUrl = (setting: string, text: string, allowPlain: boolean) => {
  const refuse = (detail: string) => Effect.fail(new ProxyConfigError({ setting, detail }))
  if (!URL.canParse(text)) return refuse("it is not a URL")
  const url = new URL(text)
  if (url.protocol !== "https:" && url.protocol !== "http:") return refuse("only https and http are spoken")
  if (url.username !== "" || url.password !== "" || url.pathname !== "/" || url.search !== "" || url.hash !== "") {
    return refuse("it must be an origin alone, such as https://api.stripe.com")
  }
  if (url.protocol === "http:" && !isLoopback(url.hostname) && !allowPlain) {
    return refuse(`plain http to ${url.hostname} would show the key to the network`)
  }
  return Effect.succeed(url)
}

/** The settings, or the first thing that is wrong with them. */
export const checkProxy = Effect.fnUntraced(function*(options: ProxyOptions): Effect.fn.Return<ProxySettings, ProxyConfigError> {
  const refuse = (setting: string, detail: string) => Effect.fail(new ProxyConfigError({ setting, detail }))
  if (!/^(?:sk|rk)_(?:test|live)_[A-Za-z0-9_]{1,240}$/.test(Redacted.value(options.stripeKey))) {
    return yield* refuse("PURSER_PROXY_STRIPE_KEY", "it does not look like a Stripe API key (rk_live_…, rk_test_…)")
  }
  const allowPlain = options.allowPlain ?? false
  const upstream = yield* readUrl("PURSER_PROXY_UPSTREAM", options.upstream ?? defaultUpstream, allowPlain)
  const files = options.filesUpstream ?? (upstream.href === `${defaultUpstream}/` ? "https://files.stripe.com" : upstream.href)
  const host = options.host ?? "127.0.0.1"
  if (!isLoopback(host) && !allowPlain) {
    return yield* refuse("PURSER_PROXY_HOST", `plain http on ${host} would show vault keys to the network; put TLS in front, or set PURSER_PROXY_ALLOW_PLAIN=true`)
  }
  const port = options.port ?? 12_112
  if (!Number.isInteger(port) || port < 0 || port > 65_535) return yield* refuse("PURSER_PROXY_PORT", "it must be 0 to 65535")
  const timeoutMs = Duration.toMillis(Duration.fromInputUnsafe(options.timeout ?? "2 minutes"))
  if (!Number.isFinite(timeoutMs) || timeoutMs < 1) return yield* refuse("PURSER_PROXY_TIMEOUT", "it must be finite and at least 1 ms")
  const storeTimeoutMs = Duration.toMillis(Duration.fromInputUnsafe(options.storeTimeout ?? "5 seconds"))
  if (!Number.isFinite(storeTimeoutMs) || storeTimeoutMs < 1) return yield* refuse("PURSER_PROXY_STORE_TIMEOUT", "it must be finite and at least 1 ms")
  const maxConnections = options.maxConnections ?? 128
  if (!Number.isInteger(maxConnections) || maxConnections < 1 || maxConnections > 10_000) {
    return yield* refuse("PURSER_PROXY_MAX_CONNECTIONS", "it must be 1 to 10000")
  }
  return {
    stripeKey: options.stripeKey, upstream, host, port, timeoutMs, storeTimeoutMs, maxConnections,
    filesUpstream: yield* readUrl("PURSER_PROXY_FILES_UPSTREAM", files, allowPlain)
  }
})
