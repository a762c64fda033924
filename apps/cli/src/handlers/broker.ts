/**
 * `purser broker`: a Majordomo broker until stopped. It needs no ledger and no key. Where a database is named it keeps there
 * what it could not read; a database that is away leaves that to the log. One that is there and not as it should be is refused at the start.
 */
import { DeadLetters } from "@purser/core"
import { Database, PgDeadLetters } from "@purser/postgres"
import { Broker } from "@purser/transport-zeromq"
import { Config, ConfigProvider, Effect, Layer, Option } from "effect"
import { serving } from "../launch.ts"
import { note } from "../ui/Output.ts"

const letters = Layer.unwrap(Effect.map(Config.option(Config.Redacted("PURSER_DATABASE_URL")), (url) =>
  Option.isNone(url) ? Layer.empty : DeadLetters.layerSink.pipe(
    Layer.provide(PgDeadLetters.layer),
    Layer.provide(Database.layerConfig),
    Layer.catchTag("DatabaseUnavailable", ({ message }) => Layer.effectDiscard(Effect.logWarning(`${message}: messages that cannot be read are only logged`)))
  )))

/** Runs a broker with the configuration's settings. */
export const broker = (options: { readonly endpoint: string | undefined }) => {
  const given = options.endpoint === undefined ? {} : { PURSER_ENDPOINT: options.endpoint }
  return serving(Effect.gen(function*() {
    const { bound } = yield* Broker
    yield* note(`a broker serves on ${bound.join(", ")}`)
    return yield* Effect.never
  })).pipe(
    Effect.provide(Broker.layerConfig.pipe(
      Layer.provide(letters),
      Layer.provide(Layer.effect(
        ConfigProvider.ConfigProvider,
        Effect.map(ConfigProvider.ConfigProvider, (rest) => ConfigProvider.orElse(ConfigProvider.fromUnknown(given), rest))
      ))
    ))
  )
}
