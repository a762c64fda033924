/** `purser proxy`: serves until stopped. */
import { Database } from "@purser/postgres"
import { ProxyServer, VaultDesk } from "@purser/spend-cap-proxy"
import { ConfigProvider, Effect, Layer } from "effect"
import { serving } from "../launch.ts"
import { listenRefused } from "../listening.ts"
import { out } from "../ui/Output.ts"

/** Serves vault keys from the configured store, in front of the configured Stripe. */
export const proxy = (options: { readonly host: string | undefined; readonly port: number | undefined }) => {
  const given = {
    ...(options.host === undefined ? {} : { PURSER_PROXY_HOST: options.host }),
    ...(options.port === undefined ? {} : { PURSER_PROXY_PORT: String(options.port) })
  }
  const flags = Layer.effect(
    ConfigProvider.ConfigProvider,
    Effect.map(ConfigProvider.ConfigProvider, (rest) => ConfigProvider.orElse(ConfigProvider.fromUnknown(given), rest))
  )
  return Effect.gen(function*() {
    const { upstream, url } = yield* ProxyServer
    const { label } = yield* Database
    yield* out(`spend-cap proxy on ${url}, in front of ${upstream}, store ${label}`)
    return yield* serving(Effect.never)
  }).pipe(
    Effect.provide(Layer.provide(VaultDesk.layerProxy, flags)),
    Effect.catchTag("ProxyListenFailed", (error) => Effect.fail(listenRefused("the spend-cap proxy", error, error.code)))
  )
}
