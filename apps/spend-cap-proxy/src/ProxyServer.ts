/** The proxy that listens: its settings checked, its store opened and migrated, its connections made, its port taken. */
import { type Config, Context, Effect, Layer, Schema } from "effect"
import { serve } from "./internal/httpServer.ts"
import { Proxy } from "./Proxy.ts"
import { checkProxy, proxyConfig, type ProxyConfigError, type ProxyOptions } from "./ProxyConfig.ts"
import { Upstream } from "./Upstream.ts"
import type { VaultStore } from "./VaultStore.ts"

/** The port is taken, or the system does not let the proxy listen. */
export class ProxyListenFailed extends Schema.TaggedError<ProxyListenFailed>("@purser/spend-cap-proxy/ProxyListenFailed")("ProxyListenFailed", {
  host: Schema.String,
  port: Schema.Int,
  code: Schema.String
}) {
  override get message() {
    return `the spend-cap proxy cannot listen on ${this.host}:${this.port}: ${this.code}`
  }
  get isRetryable() {
    return this.code === "EADDRINUSE"
  }
}

/** The listening proxy. `url` is what clients use in place of Stripe's. */
export class ProxyServer extends Context.Service<ProxyServer, {
  readonly url: string
  readonly host: string
  readonly port: number
  /** The upstream's origin. */
  readonly upstream: string
}>()("@purser/spend-cap-proxy/ProxyServer") {
  /** Serves until the scope closes; calls under way are finished first. */
  static readonly layer = (options: ProxyOptions): Layer.Layer<ProxyServer, ProxyConfigError | ProxyListenFailed, VaultStore> =>
    Layer.unwrap(Effect.map(checkProxy(options), (settings) =>
      Layer.effect(ProxyServer, Effect.gen(function*() {
        const proxy = yield* Proxy
        const { host } = settings
        const port = yield* serve(settings, proxy.handle).pipe(
          Effect.mapError((error) => new ProxyListenFailed({ host, port: settings.port, code: error.code ?? "unknown" }))
        )
        return ProxyServer.of({ host, port, url: `http://${host.includes(":") ? `[${host}]` : host}:${port}`, upstream: settings.upstream.origin })
      })).pipe(
        // Each server forwards to its own upstream, also when one program has two.
        Layer.provide(Layer.fresh(Proxy.layer(settings))), Layer.provide(Upstream.layer(settings)))))

  /** From the environment, see the proxy's page of the configuration. */
  static readonly layerConfig: Layer.Layer<ProxyServer, Config.ConfigError | ProxyConfigError | ProxyListenFailed, VaultStore> = Layer.unwrap(
    Effect.gen(function*() {
      return ProxyServer.layer(yield* proxyConfig)
    })
  )
}
