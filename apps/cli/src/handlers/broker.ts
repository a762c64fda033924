/** `purser broker`: a Majordomo broker until stopped. It needs no ledger and no key. */
import { Broker } from "@purser/transport-zeromq"
import { ConfigProvider, Effect, Layer } from "effect"
import { serving } from "../launch.ts"
import { note } from "../ui/Output.ts"

/** Runs a broker with the configuration's settings. */
export const broker = (options: { readonly endpoint: string | undefined }) => {
  const given = options.endpoint === undefined ? {} : { PURSER_ENDPOINT: options.endpoint }
  return serving(Effect.gen(function*() {
    const { bound } = yield* Broker
    yield* note(`a broker serves on ${bound.join(", ")}`)
    return yield* Effect.never
  })).pipe(
    Effect.provide(Broker.layerConfig.pipe(
      Layer.provide(Layer.effect(
        ConfigProvider.ConfigProvider,
        Effect.map(ConfigProvider.ConfigProvider, (rest) => ConfigProvider.orElse(ConfigProvider.fromUnknown(given), rest))
      ))
    ))
  )
}
