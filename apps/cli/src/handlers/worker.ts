/** `purser worker`: serves until stopped. */
import { DeadLetters, SpendCap } from "@purser/core"
import { ChargePipeline, ChargeWorker, Refunds, Sweeper } from "@purser/engine"
import { Stores, Telemetry, TransportConfig, type TransportName } from "@purser/purser"
import { Database } from "@purser/postgres"
import { StripeGateway, StripeRefunds } from "@purser/stripe"
import { ConfigProvider, Config, Effect, Layer } from "effect"
import { serving } from "../launch.ts"
import { note } from "../ui/Output.ts"
import { publishFeed } from "./feed.ts"
import { watchWorker } from "../ui/WorkerView.ts"
import { beating, oneName } from "./oneName.ts"
import { watchPauses } from "./pause.ts"

/** Serves charge requests from the configured transport, ledger and Stripe account; with `feed` it publishes the ledger's events beside it. */
export const worker = (options: { readonly endpoint: string | undefined; readonly transport: TransportName | undefined; readonly feed: boolean }) => {
  const given = {
    ...(options.endpoint === undefined ? {} : { PURSER_ENDPOINT: options.endpoint }),
    ...(options.transport === undefined ? {} : { PURSER_TRANSPORT: options.transport })
  }
  const stack = ChargeWorker.layerNoDeps.pipe(
    Layer.provide(Sweeper.layerNoDeps),
    Layer.provide(Layer.mergeAll(ChargePipeline.layer, Refunds.layer)),
    Layer.provide(Layer.mergeAll(StripeGateway.layerConfig, StripeRefunds.layer)),
    Layer.provide(TransportConfig.layer.pipe(Layer.provide(DeadLetters.layerSink))),
    Layer.provideMerge(Stores.layerConfig),
    Layer.provideMerge(oneName("worker")),
    Layer.provide(Layer.effect(
      ConfigProvider.ConfigProvider,
      Effect.map(ConfigProvider.ConfigProvider, (rest) => ConfigProvider.orElse(ConfigProvider.fromUnknown(given), rest))
    ))
  )
  return Effect.gen(function*() {
    const { run } = yield* ChargeWorker
    const database = yield* Database
    const endpoint = options.endpoint ?? (yield* Config.String("PURSER_ENDPOINT").pipe(Config.withDefault("tcp://127.0.0.1:5555")))
    yield* note(`starting a worker on ${endpoint}, ledger ${database.label}`)
    if (database.kind === "pglite") yield* note("The embedded database serves this process alone: to share the ledger with other processes, set PURSER_DATABASE_URL.")
    yield* watchPauses
    yield* Telemetry.watchStores
    yield* beating(`requests on ${endpoint}`)
    const cap = yield* SpendCap
    yield* watchWorker({
      title: `worker on ${endpoint}, ledger ${database.label}`,
      caps: Effect.map(Effect.orElseSucceed(cap.report(), () => []), (caps) => caps.filter(({ closed }) => !closed))
    })
    if (options.feed) yield* publishFeed({})
    return yield* serving(run)
  }).pipe(Effect.scoped, Effect.provide(stack))
}
