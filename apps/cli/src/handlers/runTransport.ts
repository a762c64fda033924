/** The transport of a command that dispatches: to its own workers over a loopback, or to workers elsewhere. */
import { loopbackTransports, type TransportName, transportNames, transports } from "@purser/purser"
import { Config, ConfigProvider, Effect, Layer } from "effect"
import { refused } from "../CommandFailed.ts"

/** What the flags say. */
export interface TransportChoice {
  readonly transport: TransportName | undefined
  /** Of workers elsewhere, or of their broker. */
  readonly endpoint: string | undefined
  readonly workers: number
}

/** The transport's layer. */
export const transportOf = (options: TransportChoice) =>
  Layer.unwrap(Effect.gen(function*() {
    const name = options.transport ?? (yield* Config.Literals(transportNames, "PURSER_TRANSPORT").pipe(Config.withDefault("req-rep" as const)))
    if (options.workers > 0) return options.endpoint === undefined ? loopbackTransports[name] : yield* refused("--endpoint is of workers elsewhere: it wants --workers 0")
    if (name === "memory" || name === "pair") return yield* refused(`--workers 0 needs a transport that reaches other processes; ${name} does not`)
    const form = yield* Config.Literals(["joined", "plain"], "PURSER_CLIENT_FORM").pipe(Config.withDefault("joined" as const))
    if (form === "plain") {
      return yield* refused("PURSER_CLIENT_FORM=plain is for workers that read no other form, and those keep no ledger of this run's: what they charge would be charged again. Leave it out, and send to `purser worker`; nothing was sent")
    }
    return options.endpoint === undefined ? transports[name] : transports[name].pipe(Layer.provide(Layer.effect(
      ConfigProvider.ConfigProvider,
      Effect.map(ConfigProvider.ConfigProvider, (rest) => ConfigProvider.orElse(ConfigProvider.fromUnknown({ PURSER_ENDPOINT: options.endpoint }), rest))
    )))
  }))
