/** `purser forwarder`: a device until stopped. It holds nothing that matters: it may be killed and started again. */
import { Forwarder, type ForwarderDevice } from "@purser/transport-zeromq"
import { ConfigProvider, Effect, Layer } from "effect"
import { serving } from "../launch.ts"
import { note } from "../ui/Output.ts"

/** Runs a device with the configuration's settings. */
export const forwarder = (options: {
  readonly device: ForwarderDevice | undefined
  readonly frontend: string | undefined
  readonly backend: string | undefined
}) => {
  const given = {
    ...(options.device === undefined ? {} : { PURSER_FORWARDER_DEVICE: options.device }),
    ...(options.frontend === undefined ? {} : { PURSER_FORWARDER_FRONTEND: options.frontend }),
    ...(options.backend === undefined ? {} : { PURSER_FORWARDER_BACKEND: options.backend })
  }
  return serving(Effect.gen(function*() {
    const { backend, ended, frontend } = yield* Forwarder
    yield* note(`a forwarder passes messages on from ${frontend.join(", ")} to ${backend.join(", ")}`)
    return yield* ended
  })).pipe(
    Effect.provide(Forwarder.layerConfig.pipe(
      Layer.provide(Layer.effect(
        ConfigProvider.ConfigProvider,
        Effect.map(ConfigProvider.ConfigProvider, (rest) => ConfigProvider.orElse(ConfigProvider.fromUnknown(given), rest))
      ))
    ))
  )
}
